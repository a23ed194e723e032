// What `piecework/testing` offers: a clock and chance that a test decides, and the suite that every engine passes.
export { manualClock } from './manual-clock.js'
export { seededRandom } from './seeded-random.js'
export { engineSuite } from './suite.js'

// Builds only when dist is missing or was not made from the sources that lie there now.
import { build, isFresh } from './build.js'

if (!isFresh()) {
  console.error('piecework: building dist from src')
  process.exitCode = build()
}

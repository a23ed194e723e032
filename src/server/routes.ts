// The route table, whole.
import { readFileSync } from 'node:fs'
import type { Route } from './route.js'
import { batchRoutes } from './routes/batches.js'
import { claimRoutes } from './routes/claims.js'
import { deadRoutes } from './routes/dead.js'
import { engineRoutes } from './routes/engine.js'
import { withFigures } from './routes/figures.js'
import { limitRoutes } from './routes/limits.js'
import { queueRoutes } from './routes/queues.js'
import { scheduleRoutes } from './routes/schedules.js'
import { taskRoutes } from './routes/tasks.js'

export const routes: readonly Route[] = withFigures([
  ...taskRoutes,
  ...claimRoutes,
  ...queueRoutes,
  ...deadRoutes,
  ...batchRoutes,
  ...limitRoutes,
  ...scheduleRoutes,
  ...engineRoutes,
])

const packageFile = new URL('../../package.json', import.meta.url)

/** The version of this package. */
export const packageVersion = (): string =>
  (JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }).version

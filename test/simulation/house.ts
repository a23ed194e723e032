// The product under simulation: the parts that the simulator puts together, from what was built or from a copy of it.
type Of<Module, Names extends keyof Module> = Pick<Module, Names>
export type House = Of<typeof import('../../dist/engines/open.js'), 'engineFor'> &
  Of<typeof import('../../dist/engines/sqlite/sync.js'), 'syncer'> &
  Of<typeof import('../../dist/ground/errors.js'), 'PieceworkError'> &
  Of<typeof import('../../dist/queue/client.js'), 'Client'> &
  Of<typeof import('../../dist/queue/connection.js'), 'Connection'> &
  Of<typeof import('../../dist/task/handler.js'), 'Bury' | 'Release'> &
  Of<typeof import('../../dist/worker/alone.js'), 'Alone'> &
  Of<typeof import('../../dist/worker/heartbeat.js'), 'makeHeartbeat'> &
  Of<typeof import('../../dist/worker/worker.js'), 'workerWith'>

const parts = [
  'engines/open.js',
  'engines/sqlite/sync.js',
  'ground/errors.js',
  'queue/client.js',
  'queue/connection.js',
  'task/handler.js',
  'worker/alone.js',
  'worker/heartbeat.js',
  'worker/worker.js',
]

/** Loads the house whose built files are in this folder. */
export async function houseIn(folder: URL): Promise<House> {
  const house = {}
  // One after the other: what two of them import must be loaded once, or there are two classes of one error.
  for (const part of parts) Object.assign(house, await import(/* @vite-ignore */ new URL(part, folder).href))
  return house as House
}

export const builtHouse = () => houseIn(new URL('../../dist/', import.meta.url))

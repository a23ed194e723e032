// A way to a PostgreSQL server that can fall silent without a word, as a network does when a cable is pulled.
import { createServer, connect as dial, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

export interface SilentWay {
  /** The same database, by this way. */
  through(url: string): string
  /** From now on nothing gets through, in either direction, old connections and new ones; nobody is told. */
  fallSilent(): void
  /** New connections get through again; those that were silent stay so for ever. */
  open(): void
  /** Ends the server's side of the connection that the server knows by this port; the client hears nothing of it. */
  cut(serverSidePort: number): void
}

export async function wayTo(port: number): Promise<SilentWay> {
  const pairs = new Set<{ near: Socket; far: Socket | null }>()
  let silent = false
  const server = createServer((near) => {
    near.on('error', () => {})
    if (silent) return void pairs.add({ near, far: null })
    const far = dial(port, '127.0.0.1')
    const pair = { near, far }
    pairs.add(pair)
    far.on('error', () => near.destroy())
    far.on('end', () => near.end())
    near.on('end', () => far.end())
    near.on('close', () => far.destroy())
    far.on('data', (data) => near.write(data))
    near.on('data', (data) => far.write(data))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const own = (server.address() as { port: number }).port
  onTestFinished(() => {
    for (const { near, far } of pairs) {
      near.destroy()
      far?.destroy()
    }
    server.close()
  })
  const mute = (near: Socket, far: Socket | null) => {
    for (const side of [near, far])
      side
        ?.removeAllListeners('data')
        .removeAllListeners('end')
        .on('data', () => {})
  }
  return {
    through: (url) => url.replace(/:\d+\//, `:${own}/`),
    fallSilent() {
      silent = true
      for (const { near, far } of pairs) mute(near, far)
    },
    open() {
      silent = false
    },
    cut(serverSidePort) {
      for (const { near, far } of pairs) {
        if (far?.localPort !== serverSidePort) continue
        mute(near, far)
        far.removeAllListeners('close').destroy()
      }
    },
  }
}

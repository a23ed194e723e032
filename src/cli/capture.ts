// Keeps what a COMMAND writes until it may be passed on: in memory while it is small, in a temporary file beyond.
import { closeSync, createReadStream, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Bytes of one output that stay in memory. */
const memoryBytesMax = 1_048_576

export class Capture {
  #chunks: Buffer[] = []
  #bytes = 0
  #last = 0
  #file: { folder: string; path: string; fd: number } | null = null

  /** Bytes taken so far. */
  get size(): number {
    return this.#bytes
  }

  /** True when the last byte is a line feed. */
  get endsLine(): boolean {
    return this.#last === 0x0a
  }

  add(chunk: Buffer): void {
    this.#last = chunk.at(-1) ?? this.#last
    this.#bytes += chunk.length
    this.#chunks.push(chunk)
    if (this.#file === null && this.#bytes > memoryBytesMax) {
      const folder = mkdtempSync(join(tmpdir(), 'piecework-'))
      const path = join(folder, 'stdout')
      this.#file = { folder, path, fd: openSync(path, 'wx', 0o600) }
    }
    if (this.#file === null) return
    for (const kept of this.#chunks) {
      for (let from = 0; from < kept.length; ) from += writeSync(this.#file.fd, kept, from)
    }
    this.#chunks = []
  }

  /** Everything, piece by piece, in the order it came; can be read more than once. */
  async *pieces(): AsyncGenerator<Buffer> {
    if (this.#file === null) yield* this.#chunks
    else yield* createReadStream(this.#file.path) as AsyncIterable<Buffer>
  }

  /** Everything at once, for callers that need it in memory anyway. */
  async whole(): Promise<Buffer> {
    const pieces: Buffer[] = []
    for await (const piece of this.pieces()) pieces.push(piece)
    return Buffer.concat(pieces)
  }

  /** Takes the temporary file away. */
  drop(): void {
    this.#chunks = []
    if (this.#file === null) return
    closeSync(this.#file.fd)
    rmSync(this.#file.folder, { recursive: true, force: true })
    this.#file = null
  }
}

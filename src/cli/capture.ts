// Keeps what a COMMAND writes until it may be passed on: in memory while it is small, in a temporary file beyond.
import { closeSync, createReadStream, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Bytes of one output that stay in memory. */
const memoryBytesMax = 1_048_576

/** A capture on its way to another process. */
export interface Packed {
  bytes: Buffer
  size: number
  last: number
  file: { folder: string; path: string } | null
  failure: string | null
}

export class Capture {
  /** What another process packed; that process has let go of it. */
  static unpack({ bytes, size, last, file, failure }: Packed): Capture {
    const capture = new Capture()
    capture.#chunks = size === 0 || file !== null ? [] : [Buffer.from(bytes)]
    capture.#bytes = size
    capture.#last = last
    capture.#file = file === null ? null : { ...file, fd: null }
    capture.#failure = failure
    return capture
  }

  #chunks: Buffer[] = []
  #bytes = 0
  #last = 0
  #file: { folder: string; path: string; fd: number | null } | null = null
  #failure: string | null = null

  /** Why the temporary file could not be written; what came after that is lost. */
  get failure(): string | null {
    return this.#failure
  }

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
    if (this.#failure !== null) return
    this.#chunks.push(chunk)
    try {
      this.#spill()
    } catch (error) {
      this.#failure = (error as Error).message
      this.#chunks = []
    }
  }

  /** Into the file, once there is more than memory should hold. */
  #spill(): void {
    if (this.#file === null && this.#bytes > memoryBytesMax) {
      const folder = mkdtempSync(join(tmpdir(), 'piecework-'))
      const path = join(folder, 'stdout')
      this.#file = { folder, path, fd: openSync(path, 'wx', 0o600) }
    }
    if (this.#file === null) return
    for (const kept of this.#chunks) {
      for (let from = 0; from < kept.length; ) from += writeSync(this.#file.fd as number, kept, from)
    }
    this.#chunks = []
  }

  /** Everything, piece by piece, in the order it came; can be read more than once. */
  async *pieces(): AsyncGenerator<Buffer> {
    if (this.#file === null) yield* this.#chunks
    else yield* createReadStream(this.#file.path) as AsyncIterable<Buffer>
  }

  /** For another process, which drops it in our place. */
  pack(): Packed {
    const { folder, path, fd } = this.#file ?? {}
    if (fd != null) closeSync(fd)
    const file = folder === undefined || path === undefined ? null : { folder, path }
    return { bytes: Buffer.concat(this.#chunks), size: this.#bytes, last: this.#last, file, failure: this.#failure }
  }

  /** Takes the temporary file away. */
  drop(): void {
    this.#chunks = []
    if (this.#file === null) return
    if (this.#file.fd !== null) closeSync(this.#file.fd)
    rmSync(this.#file.folder, { recursive: true, force: true })
    this.#file = null
  }
}

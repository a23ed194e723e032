// The disk of the simulation: what it must have kept when the power goes, and what it may have kept of the rest.

/**
 * @typedef {import('./log.js').Event} Event
 * @typedef {() => number} Random in [0, 1)
 * @typedef {{ seq: number, at: number, data: Buffer } | { seq: number, size: number }} Change a write or a truncation
 *
 * @typedef {object} Cut how the disk treats what no sync covered
 * @property {'none' | 'all' | 'first' | 'each'} kept nothing; everything; the first ones in order, the last of them
 *   torn; or each one by itself kept, dropped or torn, in any order
 * @property {number} chance of a change to be kept, for `each`
 * @property {boolean} junk what was never written, in a file that grew, is junk instead of zeros
 */

const sectorBytes = 512

/** Draws how the disk of one point behaves. */
export function drawCut(/** @type {Random} */ random) {
  const draw = random()
  const kept = draw < 0.25 ? 'none' : draw < 0.35 ? 'all' : draw < 0.6 ? 'first' : 'each'
  return /** @type {Cut} */ ({ kept, chance: [0.1, 0.5, 0.9][Math.floor(random() * 3)], junk: random() < 0.5 })
}

/** The bytes of one file: those that are certain, and the changes since, in order. */
class FileOnDisk {
  /** @type {Buffer} */
  certain = Buffer.alloc(0)
  /** @type {Change[]} */
  changes = []

  /** A sync that began at `seq` has ended: what was changed before is certain now. */
  settle(/** @type {number} */ seq) {
    const covered = this.changes.filter((change) => change.seq < seq)
    this.changes = this.changes.filter((change) => change.seq >= seq)
    for (const change of covered) this.certain = changed(this.certain, change)
  }

  /**
   * The bytes after a power cut.
   * @param {Cut} cut
   * @param {Random} random
   */
  after(cut, random) {
    // Not Buffer.from: what grows must own the memory behind it, and that one hands out parts of a common pool.
    /** @type {Buffer} */
    let bytes = Buffer.alloc(this.certain.length)
    this.certain.copy(bytes)
    const whole = cut.kept === 'first' ? Math.floor(random() * (this.changes.length + 1)) : 0
    this.changes.forEach((change, index) => {
      const fate = fateOf(cut, index, whole, random)
      if (fate === 'kept') bytes = changed(bytes, change)
      else if (fate === 'torn') bytes = torn(bytes, change, cut, random)
    })
    return bytes
  }
}

/** @returns {'kept' | 'dropped' | 'torn'} */
function fateOf(/** @type {Cut} */ { kept, chance }, /** @type {number} */ index, /** @type {number} */ whole, random) {
  if (kept === 'none') return 'dropped'
  if (kept === 'all') return 'kept'
  if (kept === 'first') return index < whole ? 'kept' : index === whole ? 'torn' : 'dropped'
  const draw = random()
  return draw < chance ? 'kept' : draw < (1 + chance) / 2 ? 'torn' : 'dropped'
}

/**
 * @param {Buffer} bytes
 * @param {Change} change
 */
function changed(bytes, change) {
  if ('size' in change) return resized(bytes, change.size)
  const end = change.at + change.data.length
  const room = end > bytes.length ? resized(bytes, end) : bytes
  change.data.copy(room, change.at)
  return room
}

/** A file of that size; doubles its memory when it grows, so that a log of small writes is not copied each time. */
function resized(/** @type {Buffer} */ bytes, /** @type {number} */ size, fill = 0) {
  if (size <= bytes.length) return bytes.subarray(0, size)
  const spare = bytes.buffer.byteLength - bytes.byteOffset
  const room =
    spare >= size ? Buffer.from(bytes.buffer, bytes.byteOffset, size) : Buffer.alloc(size * 2).subarray(0, size)
  if (spare < size) bytes.copy(room)
  room.fill(fill, bytes.length)
  return room
}

/**
 * A change of which the disk kept only some sectors. The size of the file may have grown all the same: names and sizes
 * are kept apart from bytes, and what such bytes are is anybody's guess.
 * @param {Buffer} bytes
 * @param {Change} change
 * @param {Cut} cut
 * @param {Random} random
 */
function torn(bytes, change, cut, random) {
  if ('size' in change) return random() < 0.5 ? changed(bytes, change) : bytes
  const { at, data } = change
  const end = at + data.length
  let room = bytes
  if (end > bytes.length && random() < 0.5) room = resized(bytes, end, cut.junk ? 1 + Math.floor(random() * 255) : 0)
  const first = Math.floor(at / sectorBytes)
  const last = Math.floor((end - 1) / sectorBytes)
  // Some disks write a run of sectors from one end, others any of them.
  const from = random() < 0.5 ? first + Math.floor(random() * (last - first + 1)) : null
  for (let sector = first; sector <= last; sector++) {
    if (from === null ? random() < 0.5 : sector > from) continue
    const start = Math.max(at, sector * sectorBytes)
    const stop = Math.min(end, (sector + 1) * sectorBytes)
    room = changed(room, { seq: 0, at: start, data: data.subarray(start - at, stop - at) })
  }
  return room
}

/** A folder on a disk whose power can be cut after any event. */
export class Disk {
  /** @type {Map<number, FileOnDisk>} */
  #files = new Map()
  /** Names as they certainly are on the disk, and what was done to them since. */
  #certain = /** @type {Map<string, FileOnDisk>} */ (new Map())
  #renamed = /** @type {{ seq: number, name: string, file: FileOnDisk | null }[]} */ ([])
  /** Names as the running system sees them. */
  #seen = /** @type {Map<string, FileOnDisk>} */ (new Map())
  /** @type {Map<bigint, number>} */
  #syncs = new Map()
  #folder = -1
  #seq = 0
  #honest

  /** `honest: false` makes a disk that answers every sync and does nothing: the control. */
  constructor(/** @type {{ honest: boolean }} */ { honest }) {
    this.#honest = honest
  }

  apply(/** @type {Event} */ event) {
    const seq = this.#seq++
    switch (event.kind) {
      case 'open':
        return this.#open(seq, event)
      case 'write':
        this.#file(event.file).changes.push({ seq, at: event.at, data: event.data })
        return
      case 'truncate':
        this.#file(event.file).changes.push({ seq, size: event.size })
        return
      case 'unlink':
        return this.#name(seq, event.name, null)
      case 'rename':
        this.#name(seq, event.to, this.#seen.get(event.from) ?? null)
        return this.#name(seq, event.from, null)
      case 'syncStart':
        this.#syncs.set(event.sync, seq)
        return
      case 'syncEnd':
        return this.#synced(event.file, this.#syncs.get(event.sync) ?? 0)
    }
  }

  /** Every name with its bytes as the running system sees them: no power was cut. */
  whole() {
    return new Map(
      [...this.#seen].map(([name, file]) => [name, file.after({ kept: 'all', chance: 1, junk: false }, () => 0)]),
    )
  }

  /**
   * Every name with its bytes as they may be after a power cut now.
   * @param {Cut} cut
   * @param {Random} random
   */
  after(cut, random) {
    const image = /** @type {Map<string, Buffer>} */ (new Map())
    const names = new Set([...this.#certain.keys(), ...this.#renamed.map(({ name }) => name)])
    for (const name of names) {
      const since = this.#renamed.filter((step) => step.name === name)
      const steps =
        cut.kept === 'none' ? 0 : cut.kept === 'all' ? since.length : Math.floor(random() * (since.length + 1))
      const file = steps === 0 ? this.#certain.get(name) : since[steps - 1]?.file
      if (file) image.set(name, file.after(cut, random))
    }
    return image
  }

  #open(/** @type {number} */ seq, /** @type {Event & { kind: 'open' }} */ { file, made, name }) {
    if (name === '.') {
      this.#folder = file
      return
    }
    const known = this.#seen.get(name)
    if (known && known === this.#files.get(file)) return
    if (!made && this.#files.has(file)) throw new Error(`${name} was opened under an inode that has another name.`)
    // An inode that was removed and is used again is another file.
    const fresh = new FileOnDisk()
    this.#files.set(file, fresh)
    this.#name(seq, name, fresh)
  }

  #name(/** @type {number} */ seq, /** @type {string} */ name, /** @type {FileOnDisk | null} */ file) {
    this.#renamed.push({ seq, name, file })
    if (file) this.#seen.set(name, file)
    else this.#seen.delete(name)
  }

  #synced(/** @type {number} */ file, /** @type {number} */ startedAt) {
    if (!this.#honest) return
    if (file !== this.#folder) return this.#file(file).settle(startedAt)
    for (const { seq, name, file: named } of this.#renamed) {
      if (seq >= startedAt) continue
      if (named) this.#certain.set(name, named)
      else this.#certain.delete(name)
    }
    this.#renamed = this.#renamed.filter(({ seq }) => seq >= startedAt)
  }

  #file(/** @type {number} */ inode) {
    const file = this.#files.get(inode)
    if (!file) throw new Error(`The log changes a file (inode ${inode}) that it never saw opened.`)
    return file
  }
}

// Knows which requests of a worker the store may have an answer for, so that an idle worker need not ask it.

/** More than a worker ever has on their way at once. */
const rememberedMax = 100

/** Of workers that joined through this engine: whatever they sent went through it, so it knows what it never saw. */
export class Asked {
  readonly #requests = new Map<string, string[]>()

  joined(worker: string): void {
    if (!this.#requests.has(worker)) this.#requests.set(worker, [])
  }

  left(worker: string): void {
    this.#requests.delete(worker)
  }

  /** True when the store has no answer for this request, for certain. */
  isNew(worker: string, request: string): boolean {
    return this.#requests.get(worker)?.includes(request) === false
  }

  /** The request goes to the store now. */
  sent(worker: string, request: string): void {
    const requests = this.#requests.get(worker)
    if (requests?.push(request) === rememberedMax) requests.shift()
  }
}

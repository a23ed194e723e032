// Claims for clients behind a wire: long polls that end when they must, and deliveries that nobody got go back.
import type { ClaimAsk, Claimed, ClaimedTask } from '../engine/contract.js'
import { pause } from '../ground/clock.js'
import type { Broker } from './broker.js'

const nothing: Claimed = { deliveries: [], nextDueMs: null, blockedBy: [] }
/** Something due that keeps being not yet there must not become a busy loop. */
const pauseMsMin = 2

/** Claims, and waits for work up to `waitMs` when there is none; ends empty at once when `ending` aborts. */
export async function poll(broker: Broker, ask: ClaimAsk, waitMs: number, ending: AbortSignal): Promise<Claimed> {
  const { engine, clock, meter } = broker
  const queues = ask.wants.map(({ queue }) => queue)
  const endMs = clock.monotonicMs() + waitMs
  meter.waiting++
  try {
    for (;;) {
      if (ending.aborted) return nothing
      const leftMs = endMs - clock.monotonicMs()
      const ear = new AbortController()
      // Listening begins before the claim: what is enqueued while it looks would else go unheard.
      const woken = leftMs > 0 && broker.roomToWait ? waiting(broker, queues, leftMs, [ear.signal, ending]) : null
      try {
        const claimed = await engine.claim(ask)
        if (claimed.deliveries.length > 0 || woken === null) return claimed
        const { nextDueMs } = claimed
        if (nextDueMs === null) await woken
        else await Promise.race([woken, pause(clock, Math.max(nextDueMs, pauseMsMin), ear.signal)])
      } finally {
        ear.abort()
      }
    }
  } finally {
    meter.waiting--
  }
}

/** Waits for work; a store that fails meanwhile is heard of by the claim that follows. */
function waiting(broker: Broker, queues: readonly string[], ms: number, ends: AbortSignal[]): Promise<boolean> {
  return broker.engine.wait(queues, ms, AbortSignal.any(ends)).catch(() => true)
}

/** What to do when the answer with these deliveries did not leave whole: give them back, uncounted, at once. */
export function givingBack(
  broker: Broker,
  worker: string,
  deliveries: readonly ClaimedTask[],
  last: () => boolean,
): () => void {
  return () => {
    // Asked again meanwhile under the same name, they are on their way with that answer.
    if (deliveries.length === 0 || !last()) return
    broker.meter.givenBack += deliveries.length
    const verdicts = deliveries.map(({ receipt }) => ({ receipt, do: 'release', by: 'unstarted' }) as const)
    // When even that fails, their leases end by themselves.
    broker.engine.settle({ worker, flush: null }, verdicts).catch(() => {})
  }
}

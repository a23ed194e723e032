// Uses a store after a power cut as its users would: repeats what they had asked for, adds, and works everything off.
import { rowsOf } from './audit.js'
import { payloadOf } from './marks.js'

/**
 * @typedef {object} Visit
 * @property {import('../../dist/engine/contract.js').Engine} engine
 * @property {import('../../dist/testing/manual-clock.js').ManualClock} clock
 * @property {import('better-sqlite3').Database} db
 * @property {import('./ledger.js').Ledger} ledger
 * @property {boolean} owes false under durability relaxed
 * @property {import('./reboot.js').Report} report
 * @property {() => number} random
 * @property {boolean} answersKept the engine's clock did not run beyond the time for which answers are kept
 */

const queues = ['lib', 'hand', 'burst-0', 'burst-1', 'fresh', 'after']
const year = 365 * 24 * 3_600_000
/** Answers are kept for ten minutes; the clock may have gone on by the two minutes it reserves, and by its leaps. */
const surelyKeptMs = 300_000

/** Does all of it; `report` hears what should not be. */
export async function workOff(/** @type {Visit} */ visit) {
  if (visit.owes) {
    await resend(visit)
    await probeKeys(visit)
  }
  /** @type {Set<string>} ids that must not be delivered any more */
  const over = new Set()
  if (visit.owes) await useOldReceipts(visit, over)
  await addMore(visit)
  // At once, while the engine's clock stands where the restart has set it; then all that is due or leased, too.
  await drain(visit, over)
  await letTimePass(visit)
  await drain(visit, over)
  const left = rowsOf(visit.db).filter(({ state }) => state !== 'dead')
  if (left.length > 0) visit.report('broken', `${left.length} tasks cannot be worked off, such as ${left[0]?.id}`)
}

/** Clients whose answer was lost in the cut send again: it must not become a second task, nor another answer. */
async function resend(/** @type {Visit} */ { engine, db, ledger, report, answersKept }) {
  if (!answersKept) return
  const sinceMs = ledger.wallMs - surelyKeptMs
  for (const { request, tasks, ids } of ledger.requests.filter(({ wallMs }) => wallMs >= sinceMs).slice(-5)) {
    const again = tasks.map(({ n, ...rest }) => ({ ...rest, payload: JSON.stringify(payloadOf(n)) }))
    const answers = await engine.enqueue(request, again)
    const now = answers.map(({ id }) => id)
    if (ids && String(now) !== String(ids)) report('lost', `${request} was answered ${ids}, and is now ${now}`)
  }
  for (const { worker, flush, receipts, outcomes, wallMs } of ledger.flushes.slice(-3)) {
    if (wallMs < sinceMs) continue
    const verdicts = receipts.map((receipt) => ({ receipt, do: /** @type {const} */ ('ack') }))
    const now = await engine.settle({ worker, flush }, verdicts)
    if (String(now) !== String(outcomes))
      report('lost', `flush ${flush} of ${worker} was ${outcomes}, and is now ${now}`)
  }
  const twice = db
    .prepare("select payload ->> 'n' as n, count(*) as times from piecework_task group by 1 having times > 1")
    .all()
  if (twice.length > 0) report('lost', `sent again became a second task: ${JSON.stringify(twice)}`)
}

/** The dedup keys and identities of accepted tasks still answer those tasks. */
async function probeKeys(/** @type {Visit} */ { engine, db, ledger, report, random }) {
  const open = new Map(rowsOf(db).map((row) => [row.id, row]))
  for (const { asked, id, accepted, duplicate, mayBeGone } of ledger.tasks.values()) {
    const { queue, dedupKey, batch, identity } = asked
    if (id === null || !accepted || duplicate || random() > 0.1) continue
    const kept = dedupKey !== undefined && !mayBeGone && open.get(Number(id))?.dedupKey === dedupKey
    if (identity === undefined && (!kept || open.get(Number(id))?.state === 'dead')) continue
    const same = identity === undefined ? { dedupKey } : { batch, identity }
    const [answer] = await engine.enqueue(null, [{ queue, payload: '{"n":-1}', ...same }])
    if (answer?.id !== id) report('lost', `${dedupKey ?? identity} was task ${id}, and is now ${answer?.id}`)
  }
}

/** A client far away still holds receipts from before the cut: they act if their claim survived, and only once. */
async function useOldReceipts(
  /** @type {Visit} */ { engine, db, ledger, report, random },
  /** @type {Set<string>} */ over,
) {
  const fences = new Map(rowsOf(db).map(({ id, fence }) => [String(id), fence]))
  for (const [id, receipt] of ledger.held) {
    if (random() > 0.1) continue
    const [outcome] = await engine.settle({ worker: 'far away', flush: null }, [{ receipt, do: 'ack' }])
    const knows = fences.get(id) === Number(receipt.split('.')[1])
    if (outcome === 'done') over.add(id)
    if (outcome === 'done' && !knows) report('repeated', `an old receipt of task ${id} acted on another delivery`)
  }
}

/** New ids are above all that were given out. */
async function addMore(/** @type {Visit} */ { engine, ledger, report }) {
  const answers = await engine.enqueue(null, Array(3).fill({ queue: 'after', payload: '{"n":0}' }))
  for (const { id } of answers) {
    if (Number(id) <= ledger.idMax) report('repeated', `the new id ${id} is not above ${ledger.idMax}`)
  }
}

async function letTimePass(/** @type {Visit} */ { engine, clock }) {
  clock.jumpWall(20 * year)
  await clock.advance(13 * 3_600_000)
  for (let moved = 1; moved > 0; ) {
    const swept = await engine.sweep(1000)
    moved = swept.expired + swept.died + swept.matured + swept.promoted
  }
}

/** Works off what is ready: nothing that is over may come, and nothing twice; every fence is a new one. */
async function drain(/** @type {Visit} */ { engine, clock, ledger, owes, report }, /** @type {Set<string>} */ over) {
  const wants = queues.map((queue) => ({ queue, types: null, max: 400 }))
  for (;;) {
    const { deliveries } = await engine.claim({ worker: 'after', requestId: null, wants })
    if (deliveries.length === 0) break
    for (const { id, fence, spent, deliveriesMax } of deliveries) {
      if (fence <= ledger.fenceMax) report('repeated', `the new fence ${fence} is not above ${ledger.fenceMax}`)
      const gone = over.has(id) || (owes && ledger.byId(id)?.gone)
      if (gone) report('lost', `task ${id} was delivered after its accepted end`)
      if (deliveriesMax !== null && spent > deliveriesMax) report('broken', `task ${id} spent ${spent} deliveries`)
      over.add(id)
    }
    const verdicts = deliveries.map(({ receipt }) => ({ receipt, do: /** @type {const} */ ('ack') }))
    const outcomes = await engine.settle({ worker: 'after', flush: null }, verdicts)
    const strange = outcomes.find((outcome) => outcome !== 'done')
    if (strange) report('broken', `an ack under a live lease answered ${strange}`)
    await clock.advance(1)
  }
}

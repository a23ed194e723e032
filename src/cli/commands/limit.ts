// `piecework limit`: lists the named limits, sets their ceilings, removes those that no queue uses.
import type { Command } from 'commander'
import { checkName } from '../../task/limits.js'
import type { LimitRecord } from '../../task/records.js'
import { table } from '../print.js'
import { type Act, acts } from '../program.js'
import { limitPatchOf } from '../settings.js'
import { withStore } from '../store.js'

export function limitCommand(program: Command): void {
  const limit = program.command('limit').description('list, set and remove named limits, which queues share by `uses`')
  acts(limit.command('list').description('list the limits with what is under them now'), list)
  const set = limit
    .command('set')
    .description('set ceilings: concurrency=20 per-second=200 adaptive=true')
    .argument('<name>')
  acts(set.argument('<setting...>', 'FIELD=VALUE; none takes a ceiling away'), setAct)
  acts(limit.command('remove').description('remove a limit that no queue uses').argument('<name>'), remove)
}

const shapeOf = ({ name, ...record }: LimitRecord) => ({ limit: name, ...record })
const none = (value: number | null) => value ?? 'none'

const rowOf = ({
  name,
  concurrencyMax,
  perSecondMax,
  adaptive,
  leased,
  concurrencyNow,
  share,
  queues,
}: LimitRecord) => [
  name,
  none(concurrencyMax),
  none(perSecondMax),
  adaptive ? `${none(concurrencyNow)} (${Math.round(share * 100)} %)` : 'all',
  leased,
  queues.join(' '),
]

const columns = ['limit', 'concurrency', 'per second', 'in force', 'leased', 'queues']

const list: Act = async ({ url, output }) =>
  withStore(url, { create: false }, async ({ engine }) => {
    const limits = (await engine.select('limit', {}, null)).items as unknown as LimitRecord[]
    if (output.json) for (const limit of limits) await output.value(shapeOf(limit))
    else await output.result(table(columns, limits.map(rowOf)))
    return 0
  })

/** A limit may be set before the first queue uses it, and before there is a store. */
const setAct: Act = async ({ url, output }, [given, settings]) => {
  const name = checkName('limit', given)
  const operator = limitPatchOf(settings as string[])
  return withStore(url, { create: true }, async ({ engine, connection }) => {
    const made = (await engine.configure('limit', name, { operator }, connection.actor)) as unknown as LimitRecord
    await (output.json ? output.value(shapeOf(made)) : output.result(table(columns, [rowOf(made)])))
    return 0
  })
}

const remove: Act = async ({ url, output }, [given]) =>
  withStore(url, { create: false }, async ({ engine, connection }) => {
    const name = checkName('limit', given)
    await engine.configure('limit', name, null, connection.actor)
    await (output.json ? output.value({ limit: name, removed: true }) : output.result(`${name} removed`))
    return 0
  })

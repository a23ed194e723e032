// `piecework token`: makes, lists and revokes the tokens by which a broker knows its callers.
import type { Command } from 'commander'
import { PieceworkError } from '../../ground/errors.js'
import { newToken, scopes } from '../../server/auth.js'
import { checkName } from '../../task/limits.js'
import type { TokenRecord } from '../../task/records.js'
import { isoOf, table } from '../print.js'
import { type Act, acts } from '../program.js'
import { withStore } from '../store.js'
import { choice, collected, duration } from '../values.js'

export function tokenCommand(program: Command): void {
  const token = program.command('token').description('make, list and revoke the tokens of a broker')
  const create = token.command('create').description('make a token and show it, this once').argument('<name>')
  create
    .option('--scope <scopes>', `separated by commas: ${scopes.join(', ')}`, 'produce,work')
    .option('--queue <glob>', 'queues it is for, * stands for any text; may be repeated (default: *)', collected)
    .option('--expires <duration>', 'how long it holds (default: until it is revoked)')
    .addHelpText(
      'after',
      `
Scopes:
  produce  enqueue, and make and seal batches      work          claim and settle
  operate  figures, policies, pauses, dead letters read-payload  see payloads where operate shows tasks
  admin    everything, tokens and the audit too
--queue covers names of queues, batches, limits and schedules. Whoever has the token gives it in PIECEWORK_TOKEN.`,
    )
  acts(create, createAct)
  acts(token.command('list').description('list the tokens, without their secrets'), list)
  acts(token.command('revoke').description('end a token, within a second').argument('<id>'), revoke)
}

/** Whoever reads a token afterwards: all but the print of its secret. */
const shapeOf = ({ hash: _, createdAt, expiresAt, ...token }: TokenRecord) => ({
  ...token,
  createdAt: isoOf(createdAt),
  expiresAt: isoOf(expiresAt),
})

const createAct: Act = async ({ url, output }, [given], options) => {
  const name = checkName('token', given)
  const wanted = String(options.scope)
    .split(',')
    .map((scope) => choice('--scope', scope.trim(), scopes))
  const queues = ((options.queue as string[] | undefined) ?? ['*']).map((glob) => checkName('--queue', glob))
  const holdsMs = options.expires === undefined ? null : duration('--expires', String(options.expires))
  return withStore(url, { create: true }, async ({ engine, connection, clock }) => {
    const { id, text, hash } = newToken()
    const expiresAt = holdsMs === null ? null : Math.round(clock.wallMs() + holdsMs)
    const patch = { name, hash, scopes: [...new Set(wanted)], queues, expiresAt }
    const made = (await engine.configure('token', id, patch, connection.actor)) as unknown as TokenRecord
    output.did(`token ${id} is made, and its text is lost: piecework token revoke ${id}`)
    if (output.json) await output.value({ ...shapeOf(made), token: text })
    else {
      await output.result(text)
      output.say(`piecework: this is token ${id} of ${name}; it is kept nowhere else`)
    }
    return 0
  })
}

const list: Act = async ({ url, output }) =>
  withStore(url, { create: false }, async ({ engine }) => {
    const tokens = ((await engine.select('token', {}, null)).items as unknown as TokenRecord[]).map(shapeOf)
    if (output.json) for (const token of tokens) await output.value(token)
    else {
      const rows = tokens.map(({ id, name, scopes: held, queues, expiresAt }) => {
        return [id, name, held.join(','), queues.join(' '), expiresAt ?? 'never']
      })
      await output.result(table(['id', 'name', 'scopes', 'queues', 'expires at'], rows))
    }
    return 0
  })

const revoke: Act = async ({ url, output }, [given]) =>
  withStore(url, { create: false }, async ({ engine, connection }) => {
    const id = String(given)
    if (!/^[0-9a-f]{12}$/.test(id)) {
      throw new PieceworkError('PW_TOKEN_UNKNOWN', 'A token is revoked by its id, 12 hex digits, not by its text.')
    }
    await engine.configure('token', id, null, connection.actor)
    output.did(`${id} is revoked`)
    await (output.json ? output.value({ id, revoked: true }) : output.result(`${id} revoked`))
    return 0
  })

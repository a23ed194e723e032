// `piecework explain`: what an error code means, why it happens and what to do.
import type { Command } from 'commander'
import { closest } from '../../ground/closest.js'
import { type ErrorCode, errorTable, PieceworkError } from '../../ground/errors.js'
import { shown } from '../../task/limits.js'
import { acts } from '../program.js'

export function explainCommand(program: Command): void {
  const command = program
    .command('explain')
    .description('explain an error code: what it means, why it happens, what to do')
    .argument('<code>', 'an error code such as PW_LEASE_LOST')
  acts(command, async ({ output }, [word]) => {
    const code = codeOf(String(word))
    const { meaning, why, cure, ...rest }: (typeof errorTable)[ErrorCode] = errorTable[code]
    const exit = 'exit' in rest ? rest.exit : 2
    if (output.json) await output.value({ code, meaning, why, cure, retryable: 'retryable' in rest, exit })
    else await output.result(`${code}: ${meaning}\n  Why:  ${why}\n  Cure: ${cure}`)
    return 0
  })
}

function codeOf(word: string): ErrorCode {
  const upper = word.toUpperCase()
  const codes = Object.keys(errorTable) as ErrorCode[]
  const code = codes.find((one) => one === upper || one === `PW_${upper}`)
  if (code !== undefined) return code
  const near = closest(upper, codes) ?? closest(`PW_${upper}`, codes)
  const hint = near ? `Did you mean ${near}?` : `Codes look like ${codes[0]}.`
  throw new PieceworkError('PW_USAGE', `There is no error code ${shown(word)}. ${hint}`, { code: word })
}

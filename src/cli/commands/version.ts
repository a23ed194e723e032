// `piecework version`: which piecework this is, and what it runs on.
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { acts } from '../program.js'

const packageFile = new URL('../../../package.json', import.meta.url)

/** The version of this package. */
export const versionOf = (): string => (JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }).version

export function versionCommand(program: Command): void {
  const command = program.command('version').description('show the version; needs no store')
  acts(command, async ({ output }) => {
    const version = versionOf()
    const { platform, arch } = process
    if (output.json) await output.value({ version, node: process.versions.node, platform, arch })
    else await output.result(`piecework ${version} (node ${process.versions.node}, ${platform} ${arch})`)
    return 0
  })
}

// Rules about words and names: ours, nobody else's, and each file says what it is for.
import { posix } from 'node:path'
import { type File, type Finding, file, inFolders, isCode, type Rule } from './tree.js'

const banned = /\b(?:jobs?|attempt(?:s|ed|ing)?|visibility timeout|message ids?|todo|fixme|for now|simply)\b/g

/** Foreign names we must write: parallel's options, for which `run` has a hint and a file format. */
const foreign = /--jobs\b|--joblog\b|JobRuntime/g

/** Pages and code that speak another product's language to the reader who comes from there. */
const speaksForeign = (path: string) => /(^|\/)sqs\b|sqs\/|compar|coming-from/.test(path)

/** `maxAttempts`, `max_attempts` and `--max-attempts` are all the two words "max attempts". */
const apart = (line: string) =>
  line
    .replace(foreign, '')
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/[_-]+/g, ' ')
    .toLowerCase()

const spoken = (f: File) =>
  !speaksForeign(f.path) &&
  (inFolders(f, 'src', 'docs', 'scripts', 'bench', 'examples') || /^[A-Z_]+\.md$/.test(f.path)) &&
  (isCode(f) || /\.(md|sql|html)$/.test(f.path))

const bannedWords: Rule = {
  name: 'one word per idea: no job, attempt, visibility timeout; no TODO, "for now" or "simply"',
  cure: 'say task, delivery or lease; finish it or leave it out; foreign words only in sqs and comparison pages',
  check: (files) =>
    files
      .filter(spoken)
      .flatMap((f) =>
        f.text
          .split('\n')
          .flatMap((line, index) =>
            [...apart(line).matchAll(banned)].map(
              (match): Finding => ({ path: f.path, line: index + 1, found: match[0] }),
            ),
          ),
      ),
  bad: [
    file('src/queue/a.ts', 'const maxAttempts = 3'),
    file('docs/a.md', 'The job is simply done.'),
    file('README.md', 'TODO'),
    file('src/queue/b.ts', 'const visibilityTimeout = job_id'),
  ],
  bites: 6,
  good: [
    file('src/cli/a.ts', "hint('--jobs', 'joblog', 'template')"),
    file('src/server/sqs/receive.ts', 'VisibilityTimeout'),
    file('docs/comparison.md', 'In BullMQ a job is a task.'),
  ],
}

/** The opening comment's first sentence, or undefined when the file starts otherwise. */
function firstSentence(f: File): string | undefined {
  const text = f.text.replace(/^#!.*\n/, '')
  const block = /^\/\*\*?([\s\S]*?)\*\//.exec(text)?.[1]?.replace(/^\s*\* ?/gm, '')
  const comment = block ?? /^(?:(?:\/\/|--|#) .*(?:\n|$))+/.exec(text)?.[0].replace(/^(?:\/\/|--|#) /gm, '')
  const sentence = /^[\s\S]*?\.(?=\s|$)/.exec(comment?.trim() ?? '')?.[0]
  return sentence?.replace(/\s+/g, ' ')
}

const hasPurpose = (f: File) =>
  (isCode(f) || f.path.endsWith('.sql') || f.path.startsWith('.ci/')) && !f.path.includes('/fixtures/')

const firstSentences: Rule = {
  name: 'a file opens with one sentence that says what it is for, and no two files say the same',
  cure: 'write the comment a newcomer needs before the first line; two files of one purpose are one file',
  check: (files) => {
    const seen = new Map<string, string>()
    return files.filter(hasPurpose).flatMap((f): Finding[] => {
      const sentence = firstSentence(f)
      if (sentence === undefined || sentence.length < 20) return [{ path: f.path, line: 1, found: 'no first sentence' }]
      const other = seen.get(sentence.toLowerCase())
      seen.set(sentence.toLowerCase(), f.path)
      return other === undefined ? [] : [{ path: f.path, line: 1, found: `the same first sentence as ${other}` }]
    })
  },
  bad: [
    file('src/task/a.ts', "import b from './b.js'"),
    file('src/task/b.ts', '// What a task is made of.\n'),
    file('src/task/c.ts', '/** What a task is made of. */\n'),
    file('src/task/d.ts', '// Rows.\n'),
  ],
  bites: 3,
  good: [
    file('src/cli/main.ts', '#!/usr/bin/env node\n// The command line: finds the command\n// and runs it. More.\n'),
    file('.ci/run', '#!/usr/bin/env bash\n# The gate as the build machine runs it.\n'),
  ],
}

const drawers = /(^|-)(utils?|helpers?|types?|misc|common|shared|stuff|lib)$/

const fileNames: Rule = {
  name: 'no file is a drawer: utils, helpers, types',
  cure: 'a thing lives where its idea lives: name the file after the idea',
  check: (files) =>
    files
      .filter((f) => isCode(f) && drawers.test((posix.basename(f.path).split('.')[0] ?? '').toLowerCase()))
      .map((f) => ({ path: f.path, found: posix.basename(f.path) })),
  bad: [file('src/task/types.ts', ''), file('test/test-helpers.ts', '')],
  bites: 2,
  good: [file('src/task/prototypes.ts', '')],
}

const machinePath = /(?<![\w.:/~*$}-])\/(?:home|Users|root|work|workspace|builds|mnt|private)\/[\w.-]+/g

const machinePaths: Rule = {
  name: "no file names a path of somebody's machine",
  cure: 'make the path from import.meta.url or a temporary folder; in prose use a relative one',
  check: (files) =>
    files.flatMap((f) =>
      f.text
        .split('\n')
        .flatMap((line, index) =>
          [...line.matchAll(machinePath)].map((match): Finding => ({ path: f.path, line: index + 1, found: match[0] })),
        ),
    ),
  bad: [file('test/a.test.ts', `const where = '${['', 'home', 'ada', 'x.db'].join('/')}'`)],
  bites: 1,
  good: [file('README.md', ['https://example.com', '.', '~'].map((start) => [start, 'home', 'x'].join('/')).join(' '))],
}

export const wordRules = [bannedWords, firstSentences, fileNames, machinePaths]

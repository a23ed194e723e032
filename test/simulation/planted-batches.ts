// Bugs of batches, of duplicates that change what they meet, and of queues that take the dead.
import { both, plant, sqlite } from './plant.js'

const ended = 'and total = done + dead + cancelled returning followUp'
const over = 'where id = ? and finishedAt is null and sealedAt is not null'
const payOwed = 'for (const [batch, text] of this.owed?.splice(0) ?? [])\n            follow(this, batch, text);'
const dies = "s.countBatch(row.batch, 'dead');\n    // A dead task"

const ofEnds = [
  plant('batch ends', 'a batch finishes without its seal', sqlite('statements.js', 'and sealedAt is not null\n', '\n')),
  plant(
    'batch ends',
    'a batch finishes while its last task is open',
    sqlite('statements.js', ended, 'and total <= done + dead + cancelled + 1 returning followUp'),
  ),
  plant(
    'batch ends',
    'a sealed batch takes tasks',
    sqlite('enqueue.js', 'if (row && row.sealedAt !== null)', 'if (row === null)'),
  ),
  plant(
    'batches finish',
    'a seal upon nothing open leaves the end to others',
    sqlite('configure.js', "s.countBatch(row.id, 'total', 0);", ''),
  ),
  plant('batches finish', 'the dead keep their batch open', both('endings.js', dies, '// A dead task')),
]

const ofFollowUps = [
  plant(
    'follow-up',
    'what follows comes each time that nothing is open',
    sqlite('statements.js', over, 'where id = ? and sealedAt is not null'),
  ),
  plant(
    'follow-up',
    'what follows comes with the next commit',
    sqlite('session.js', 'follow(this, batch, ended.followUp);', '(this.owed ??= []).push([batch, ended.followUp]);'),
    sqlite('session.js', 'flushBatches() {', `flushBatches() {\n        ${payOwed}`),
  ),
  plant(
    'follow-up',
    'what was said first stays',
    sqlite(
      'configure.js',
      's.q.setFollowUp.run(JSON.stringify(next), row.id);',
      'if (row.followUp === null)\n        s.q.setFollowUp.run(JSON.stringify(next), row.id);',
    ),
  ),
  plant(
    'follow-up',
    'what follows does not take its place',
    sqlite('enqueue.js', 'insert(s, task, id, type, known ? place : null)', 'insert(s, task, id, type, null)'),
  ),
]

const ofCounts = [
  plant(
    'batch counts',
    'a redriven task stays counted as dead',
    both('acts.js', "s.countBatch(row.batch, 'dead', -1);\n    s.touchLane", 's.touchLane'),
  ),
  plant('batch counts', 'a place is not counted', sqlite('configure.js', "s.countBatch(outer.id, 'total');", '')),
  plant(
    'batch counts',
    'who is asked to cancel and does so is not counted',
    both(
      'endings.js',
      "s.countBatch(row.batch, 'cancelled');\n    gone(s, row);\n    return",
      'gone(s, row);\n    return',
    ),
  ),
]

const ofDuplicates = [
  plant(
    'duplicates',
    'a replaced task keeps the place of its old priority',
    both('duplicate.js', 'row.place + (row.priority - priority) * headStartMs', 'row.place'),
  ),
  plant(
    'duplicates',
    'a delayed task keeps its place',
    both('duplicate.js', 'place: placeOf(dueAt, priority, headStartMs)', 'place: row.place'),
  ),
  plant(
    'duplicates',
    'a replacement changes nothing',
    both(
      'duplicate.js',
      "=> dedupKey !== undefined && onDuplicate !== 'keep'",
      "=> dedupKey !== undefined && onDuplicate === 'delay'",
    ),
  ),
]

const ofDead = [
  plant(
    'dead to',
    'a task whose lease ends for the last time stays with the dead',
    both(
      'endings.js',
      'const target = row.flags & moveAsked ?',
      "const target = row.flags & moveAsked || event === 'expire' ?",
    ),
  ),
  plant('dead to', 'the budget goes along', both('endings.js', 'spent: 0,\n            releases: 0,', 'releases: 0,')),
  plant(
    'dead to',
    'the dedup key goes along',
    both('endings.js', 'flags: 0,\n            dedupKey: null,', 'flags: 0,'),
  ),
]

export const ofBatches = [...ofEnds, ...ofFollowUps, ...ofCounts, ...ofDuplicates, ...ofDead]

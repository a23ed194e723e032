// The error codes of schedules, and of the routes along which new tasks follow those that were moved.
import type { Entry } from './broker-codes.js'

export const scheduleCodes = {
  PW_MOVE_CIRCLE: {
    meaning: 'The route would lead back to where it begins.',
    why: 'Tasks of this type already go from the target to here, so that a new one would never arrive.',
    cure: 'Take the first route away with `piecework queue move QUEUE --type TYPE --back`.',
  },
  PW_MOVE_UNKNOWN: {
    meaning: 'No route leads away from this type of task.',
    why: 'It was never moved as a type, or somebody has brought it back already.',
    cure: 'Check queue and type; `piecework queue show QUEUE` lists its routes.',
  },
  PW_SCHEDULE_INVALID: {
    meaning: 'This does not say when a schedule fires.',
    why: 'The expression cannot be read, or not exactly one of cron, everyMs and dueAt was given.',
    cure: 'Give five or six fields ("0 3 * * *"), or everyMs, or dueAt; `piecework schedule next --cron …` tries it.',
  },
  PW_SCHEDULE_NEVER: {
    meaning: 'The schedule would never fire.',
    why: 'No date fits the expression, as on 30 February, or its one instant lies before a slot it has had already.',
    cure: 'Correct it; `piecework schedule next` shows the next instants of an expression.',
  },
  PW_SCHEDULE_UNKNOWN: {
    meaning: 'There is no such schedule.',
    why: 'Nobody set it in this queue, or it was removed.',
    cure: 'Check queue and name; `piecework schedule list` lists them.',
  },
  PW_ZONE_UNKNOWN: {
    meaning: 'This time zone is not known.',
    why: 'It is no name of the IANA list, or this Node.js was built without zones.',
    cure: 'Use a name such as Europe/Berlin or UTC; an offset such as +02:00 knows no summer time and is refused.',
  },
} as const satisfies Record<string, Entry>

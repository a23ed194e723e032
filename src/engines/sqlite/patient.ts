// Tries again what another connection keeps from us, until it lets go: for opening and for reads, which take no turn.
import type { Database } from 'better-sqlite3'
import { type Clock, pause, type Random } from '../../ground/clock.js'
import { isBusy, translated } from './errors.js'
import { busyMs } from './turn.js'

export class Patient {
  constructor(
    private readonly ports: { clock: Clock; random: Random },
    /** The store's file, for errors. */
    private readonly file: () => string,
  ) {}

  /** The answer of `once`, which runs again while another connection is in the way; throws PW_BUSY in the end. */
  async until<T>(once: () => T): Promise<T> {
    const { clock, random } = this.ports
    const endMs = clock.monotonicMs() + busyMs
    for (;;) {
      try {
        return once()
      } catch (error) {
        if (!isBusy(error) || clock.monotonicMs() > endMs) throw translated(error, this.file())
        await pause(clock, 1 + random() * 4)
      }
    }
  }

  /** Runs `work` in a write transaction, waiting for the lock as long as every call does. */
  async locked<T>(db: Database, work: () => T): Promise<T> {
    await this.until(() => db.exec('begin immediate'))
    try {
      const answer = work()
      db.exec('commit')
      return answer
    } catch (error) {
      if (db.inTransaction) db.exec('rollback')
      throw translated(error, this.file())
    }
  }
}

// The SQLite engine in memory passes the conformance suite.
import { engineSuite } from 'piecework/testing'
import { describe, it } from 'vitest'
import { sqliteStore } from './subject.js'

engineSuite({ persists: false, deaths: true, store: () => sqliteStore({ file: false }) }, { describe, it })

// The SQLite engine on a file passes the conformance suite.
import { engineSuite } from 'piecework/testing'
import { describe, it } from 'vitest'
import { sqliteStore } from './subject.js'

engineSuite({ persists: true, deaths: true, store: () => sqliteStore({ file: true }) }, { describe, it })

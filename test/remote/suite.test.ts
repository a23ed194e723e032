// The remote engine passes the conformance suite through a real broker on the loopback.
import { engineSuite } from 'piecework/testing'
import { describe, it } from 'vitest'
import { remoteStore } from './subject.js'

engineSuite({ persists: true, deaths: false, store: () => remoteStore() }, { describe, it })

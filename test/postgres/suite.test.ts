// The PostgreSQL engine passes the conformance suite.
import { engineSuite } from 'piecework/testing'
import { describe, it } from 'vitest'
import { serverOfFile } from './server.js'
import { postgresStore } from './subject.js'

const server = serverOfFile()
const store = async () => postgresStore(await server())

engineSuite({ persists: true, deaths: true, oneClock: true, store }, { describe, it })

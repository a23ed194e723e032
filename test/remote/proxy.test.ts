// The remote engine passes the conformance suite through a way that loses, doubles, holds up and forgets.
import { engineSuite } from 'piecework/testing'
import { describe, expect, it } from 'vitest'
import { type Fault, faults, wayTo } from './proxy.js'
import { remoteStore } from './subject.js'

const counted = new Map<Fault, number>()
const done = (fault: Fault) => void counted.set(fault, (counted.get(fault) ?? 0) + 1)
let seed = 8800

const store = () => remoteStore({ between: (url, calm) => wayTo(url, { seed: ++seed, share: 0.35, calm, done }) })

engineSuite({ persists: true, deaths: false, store }, { describe, it })

it('met every kind of trouble often enough to say so', () => {
  for (const fault of faults)
    expect([fault, (counted.get(fault) ?? 0) >= 30], `${counted.get(fault)}`).toEqual([fault, true])
})

// The error codes of the broker and of those who call it, and what every error code says.

/** One error code. */
export interface Entry {
  /** What the code means, one sentence. */
  readonly meaning: string
  /** How one gets here. */
  readonly why: string
  /** What to do now. */
  readonly cure: string
  /** True when the same call may succeed later without a change. */
  readonly retryable?: true
  /** The command line's exit code; 2 unless said. */
  readonly exit?: 3 | 4 | 126 | 127 | 130
}

export const brokerCodes = {
  PW_BODY_TOO_LARGE: {
    meaning: "The request's body is too large.",
    why: 'It has more bytes than this route takes.',
    cure: 'Send it in parts: arrays of at most 1000 tasks, or an application/x-ndjson stream, which has no ceiling.',
  },
  PW_BROKER_FAILED: {
    meaning: 'The broker did not answer as a broker does.',
    why: 'Something else listens there, or a proxy between answered in its stead.',
    cure: 'Check the URL and what stands between; `curl URL/healthz` shows who answers.',
    retryable: true,
    exit: 3,
  },
  PW_BROKER_UNREACHABLE: {
    meaning: 'The broker cannot be reached.',
    why: 'It is not running, the network between is down, or answers were lost again and again.',
    cure: 'Start it with `piecework serve`, or wait; what went through is not done twice.',
    retryable: true,
    exit: 3,
  },
  PW_CONTENT_TYPE: {
    meaning: 'The body is of a kind that this route does not take.',
    why: 'The content-type header names neither application/json nor, for enqueues, application/x-ndjson.',
    cure: 'Send the header content-type: application/json.',
  },
  PW_FORBIDDEN: {
    meaning: 'This token may not do that.',
    why: 'Its scopes or its queues do not cover the call.',
    cure: 'Make a token that covers it: piecework token create --scope S --queue GLOB.',
  },
  PW_METHOD_UNKNOWN: {
    meaning: 'This path does not know the method.',
    why: 'The path exists, for other methods.',
    cure: 'The Allow header names them; /v1/openapi.json describes each.',
  },
  PW_NOT_SUPPORTED: {
    meaning: 'This version has no such part.',
    why: 'The route is part of the API, and what it needs is not built yet.',
    cure: 'Leave it out, or update piecework.',
  },
  PW_ORIGIN_REFUSED: {
    meaning: 'The request came by a way that a web page could have taken.',
    why: 'Its Origin is not ours, or its Host is not a name of this machine while no token is asked for.',
    cure: 'Call the broker from a program, by the address it printed; web pages need a token and the same origin.',
  },
  PW_REQUEST_CHANGED: {
    meaning: 'One name was used for two different calls.',
    why: 'The same Idempotency-Key or request id came with another body within 10 minutes.',
    cure: 'Use a new key for each call, and the old one only to send the same call again.',
  },
  PW_REQUEST_INVALID: {
    meaning: 'This is no HTTP request that can be understood.',
    why: 'Its head is malformed, too long or ambiguous, or its body did not come in time.',
    cure: 'Send it with a well-kept HTTP client.',
  },
  PW_ROUTE_UNKNOWN: {
    meaning: 'There is nothing at this path.',
    why: 'The path is misspelled, or a name in it is not percent-encoded (a/b is a%2Fb).',
    cure: '/v1/openapi.json lists every path.',
  },
  PW_SERVER_BUSY: {
    meaning: 'The broker takes no more at the moment.',
    why: 'It is stopping, or has reached a ceiling on what it does at once.',
    cure: 'Send the same request again after the seconds in Retry-After.',
    retryable: true,
    exit: 3,
  },
  PW_SERVE_EXPOSED: {
    meaning: 'The broker would be open to strangers.',
    why: 'It would listen beyond this machine without a token or without TLS.',
    cure: 'Make a token (piecework token create) and give --tls-cert and --tls-key, or --behind-proxy.',
  },
  PW_TOKEN_INVALID: {
    meaning: 'There is no valid token in the request.',
    why: 'The Authorization header is missing or malformed, or its token is unknown, expired or revoked.',
    cure: 'Send Authorization: Bearer TOKEN; our library takes it from PIECEWORK_TOKEN.',
    exit: 3,
  },
  PW_TOKEN_THIRD: {
    meaning: 'A name has two live tokens already.',
    why: 'Two may live so that one can take over from the other; a third would be one that nobody looks after.',
    cure: 'Revoke the older one first: piecework token revoke ID.',
  },
  PW_TOKEN_UNKNOWN: {
    meaning: 'There is no such token.',
    why: 'It was revoked already, or the id is misspelled.',
    cure: '`piecework token list` shows the ids.',
  },
  PW_TOO_MANY: {
    meaning: 'Too many failed logins from this address.',
    why: 'Each wrong token makes the next look at one slower.',
    cure: 'Wait for the seconds in Retry-After, then send a valid token.',
    retryable: true,
    exit: 3,
  },
} as const satisfies Record<string, Entry>

import { DELETED, type Known, type KnownLink, RESERVED } from './kill-known.ts'

/** Each acknowledged change is one event, and no change that did not happen is one. */

interface Service {
  fetch(path: string, init?: RequestInit): Promise<Response>
}

interface Event {
  kind: string
  before: string | null
  after: string | null
  links: number
}

const read = async (service: Service, path: string, key: string): Promise<string> =>
  (await service.fetch(path, { headers: { 'x-api-key': key } })).text()

/**
 * Each change gives a link a URL that no other change has: the events form a chain from the
 * creation to the URL that it has now, if none is lost and none is there twice.
 */
export async function checkHistory(
  service: Service,
  key: string,
  { code, states: [state] }: KnownLink,
): Promise<string[]> {
  if (state === DELETED) return []
  const events: Event[] = []
  for (let before: string | null = ''; before !== null; ) {
    const path = `/api/links/${code}/history?limit=100${before && `&before=${before}`}`
    const page = JSON.parse(await read(service, path, key)) as {
      items: Event[]
      next: string | null
    }
    events.unshift(...page.items.toReversed())
    before = page.next
  }
  const [created, ...changes] = events
  if (created?.kind !== 'created') return [`${code} has no creation: ${JSON.stringify(events)}`]
  const current = state === RESERVED ? null : state
  // A batch does not say the URL of each link.
  let url = created.links > 1 ? (changes[0]?.before ?? current) : created.after
  for (const { kind, before, after } of changes) {
    const isNext = kind === 'destination' && before === url && after !== url
    if (!isNext) return [`${code} was ${url}, then ${kind} ${before} to ${after}`]
    url = after
  }
  return url === current ? [] : [`${code} is ${current}, and ${url} in its history`]
}

/** Deletions as the export has them. */
export async function checkDeletions(
  service: Service,
  key: string,
  known: Known,
): Promise<string[]> {
  const counts = new Map<string, number>()
  const lines = (await read(service, '/api/export', key)).trim().split('\n')
  for (const line of lines) {
    const { event } = JSON.parse(line) as { event?: { kind: string; before: string } }
    if (event?.kind === 'deleted') counts.set(event.before, (counts.get(event.before) ?? 0) + 1)
  }
  return [...new Set([...counts.keys(), ...known.deletions.keys()])].flatMap((code) => {
    const count = counts.get(code) ?? 0
    const deletions = known.deletionsOf(code)
    const isRight = deletions.allows(count)
    const problem = `${code} has ${count} deletions in the history, not ${deletions}`
    deletions.settle(count)
    return isRight ? [] : [problem]
  })
}

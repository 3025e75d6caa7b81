import {
  type AcmeClient,
  type Authorization,
  askUntil,
  type Order,
  withoutSecrets,
} from './acme.ts'

interface ValidationOptions {
  /** Has the service answer the challenges. Resolves when it does. */
  setAnswers(answers: Record<string, string>): Promise<void>
  maxMs: number
}

type Challenge = Authorization['challenges'][number]

/**
 * Has the authority ask the service about each name of an order (HTTP-01). Returns the names for
 * which that failed, with a sentence each.
 */
export async function validate(
  client: AcmeClient,
  { authorizations }: Order,
  { setAnswers, maxMs }: ValidationOptions,
): Promise<Map<string, string>> {
  const answers: Record<string, string> = {}
  const open: { url: string; challenge: Challenge; name: string }[] = []
  const errors = new Map<string, string>()
  for (const url of authorizations) {
    const authorization = await client.authorization(url)
    const name = authorization.identifier.value
    const challenge = authorization.challenges.find(({ type }) => type === 'http-01')
    if (authorization.status === 'valid') continue
    if (authorization.status !== 'pending' || !challenge?.token) {
      errors.set(name, sentenceOf(name, challenge))
    } else {
      answers[challenge.token] = client.keyAuthorization(challenge.token)
      open.push({ url, challenge, name })
    }
  }
  try {
    // All threads have them before the authority asks.
    await setAnswers(answers)
    for (const { challenge } of open) {
      if (challenge.status === 'pending') await client.respond(challenge.url)
    }
    const deadline = performance.now() + maxMs
    for (const { url, name } of open) {
      const isDecided = ({ status }: Authorization) => status !== 'pending'
      const { status, challenges } = await askUntil(
        isDecided,
        () => client.authorization(url),
        deadline,
      )
      const challenge = challenges.find(({ type }) => type === 'http-01')
      if (status !== 'valid') errors.set(name, sentenceOf(name, challenge))
    }
  } finally {
    await setAnswers({})
  }
  return errors
}

/** What the operator can do about it. */
function sentenceOf(name: string, challenge: Challenge | undefined): string {
  const { type = '', detail = '' } = challenge?.error ?? {}
  const kind = type.replace(/^.*:/, '')
  const said = withoutSecrets(detail)
  const url = `http://${name}/`
  if (kind === 'connection') {
    return (
      `The certificate authority could not reach ${url} (${said}). Does its A or AAAA record ` +
      'lead to this server, and is port 80 open?'
    )
  }
  if (kind === 'dns') {
    return `The certificate authority found no address of ${name} (${said}). Add its A record.`
  }
  if (kind === 'unauthorized') {
    return (
      `Another server answered the certificate authority at ${url} (${said}). Does its A or ` +
      'AAAA record lead to this server?'
    )
  }
  return said || 'The certificate authority did not say what is wrong.'
}

import { makeAccount, Service, unlimited } from '../../support/binary.ts'
import { BODY } from '../../support/hostile-requests.ts'

/** Where the code HOPCODE1 leads. */
export const LANDING = 'https://example.com/landing'

/** What hostile requests go to. */
export async function startTarget(dataDir: string): Promise<{ service: Service; key: string }> {
  const env = {
    ...unlimited(dataDir),
    BASE_URL: 'http://hop.test',
  }
  const key = await makeAccount(env)
  const service = await Service.start(env)
  const reserved = await service.post('/api/reserve', key, { code: 'HOPCODE1' })
  const { passcode } = (await reserved.json()) as { passcode: string }
  await service.post('/api/update', key, { code: 'HOPCODE1', passcode, url: LANDING })
  await service.shorten(key, JSON.parse(BODY).url)
  return { service, key }
}

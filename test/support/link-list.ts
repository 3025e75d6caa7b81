import type { TestApp } from './app.ts'

/** Links with titles, tags and long destinations. */
export async function createCampaign(app: TestApp, count = 50): Promise<void> {
  const path = 'campaign/2026/spring?utm_source=flyer&utm_medium=print&utm_campaign='
  const urls = Array.from({ length: count }, (_, n) => `https://shop-${n}.example.com/${path}${n}`)
  const { body } = await app.call('POST', '/api/bulk-shorten', { key: 'free', json: { urls } })
  const codes = (body.results as { code: string }[]).map(({ code }) => code)
  for (const [n, code] of codes.entries()) {
    const json = { title: `Flyer number ${n} of the spring campaign`, tags: ['print', `tag-${n}`] }
    const { status } = await app.call('PATCH', `/api/links/${code}`, { key: 'free', json })
    // Beyond the write budget of a minute.
    if (status === 429) app.advance(60_000)
  }
}

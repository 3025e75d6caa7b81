import { type Attack, highest, p99, structure, timing } from './attacked.ts'
import { isOk, members, start } from './besides.ts'

/** ZIP files with as many images as there may be. */

const IMAGES = 1000
/** A caption that fills its line; the size of a poster. */
const QUERY = 'sent=1&caption=Scan+for+the+menu+of+the+day&file=png'

export const zips: Attack = {
  name: 'zips',
  about: `ZIP files of ${IMAGES} codes with captions, two at a time of one account`,
  async run(program, { isShort }) {
    await using attacked = await start(program)
    const [member] = await members(attacked, 1, 'enterprise')
    if (!member) throw new Error('there is no member')
    const count = isShort ? 100 : IMAGES
    const urls = Array.from({ length: count }, (_, i) => `https://example.com/zip/${i}`)
    const made = await attacked.post('/api/bulk-shorten', member, JSON.stringify({ urls }))
    if (!(await isOk(Promise.resolve(made), 201))) throw new Error('no links were made')
    const browser = await attacked.signIn(member, '192.0.2.20')
    const download = async () => {
      const path = `/app/print/codes.zip?${QUERY}`
      const answer = await attacked.service.fetch(path, { headers: { cookie: browser.cookie } })
      return { status: answer.status, bytes: (await answer.bytes()).length }
    }
    // What is compiled at its first use takes memory once.
    await download()
    const alone = await attacked.observe(() => Bun.sleep(isShort ? 500 : 4000))
    let done: Awaited<ReturnType<typeof download>>[] = []
    const beside = await attacked.observe(async () => {
      done = await Promise.all([download(), download()])
      if (!isShort) done.push(await download())
    })
    const whole = done.filter(({ status, bytes }) => status === 200 && bytes > count * 500)
    return [
      structure('ZIP files at a time of one account', isShort ? whole.length : whole.length - 1, 1),
      structure('ZIP files that are missing', Math.max(0, (isShort ? 1 : 2) - whole.length), 0),
      structure('redirects that failed', beside.failed, 0),
      timing('memory growth', beside.residentMost - beside.residentBefore, 64, 'MiB'),
      timing(
        'p99 of redirects, beside alone',
        p99(beside.latencies) / p99(alone.latencies),
        1.5,
        '×',
      ),
      timing('slowest redirect', highest(beside.latencies), 50, 'ms'),
    ]
  },
}

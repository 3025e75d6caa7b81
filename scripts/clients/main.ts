/** A program with the client that openapi-generator writes for TypeScript and fetch. */

import { Configuration, LinksApi, ResponseError } from 'hopcode-client'

function check(isRight: boolean, what: string): void {
  if (!isRight) throw new Error(`wrong: ${what}`)
}

const links = new LinksApi(new Configuration({ apiKey: process.env.API_KEY ?? '' }))

const shortenBody = { url: 'https://example.com/typescript' }
const { code, passcode, reused } = await links.shorten({ shortenBody })
if (reused || passcode === null) throw new Error('wrong: shorten')
const again = await links.shorten({ shortenBody })
check(again.reused && again.passcode === null && again.code === code, 'reuse')
const reserved = await links.reserve({ reserveBody: { code: 'CLIENTTYPES1' } })
check(reserved.code === 'CLIENTTYPES1' && reserved.url === null, 'reserve')

const urls = ['https://example.com/typescript/batch', 'no URL']
const { results } = await links.bulkShorten({ bulkShortenBody: { urls } })
const [created, failed] = results
check(created?.ok === true && created.code !== undefined, 'batch, created')
check(failed?.ok === false && failed.error !== undefined, 'batch, refused')

const changed = await links.patchLink({ code, linkChange: { title: 'Poster', tags: ['spring'] } })
check(changed.title === 'Poster' && changed.tags[0] === 'spring', 'change')
const cleared = await links.patchLink({ code, linkChange: { title: null } })
check(cleared.title === null && cleared.tags[0] === 'spring', 'clear')

const body =
  '{"code":"CLIENTTYPES2","url":"https://example.com/typescript/import","hits":5000000000}\n'
const imported = await links.importLinks({ body })
check(imported.links === 1 && imported.results[0]?.outcome === 'created', 'import')
const page = await links.listLinks({ limit: 200, search: 'CLIENTTYPES2' })
check(page.total === 1 && page.items[0]?.hitCount === 5_000_000_000, 'list')
check((await links.lookup({ code: 'CLIENTTYPES1' })).url === null, 'lookup')

const url = 'https://example.com/typescript/2'
check((await links.update({ updateBody: { code, passcode, url } })).updated, 'update')
check((await links.deleteLink({ deleteBody: { code, passcode } })).deleted, 'delete')
const error = await links.getLink({ code }).catch((failure: unknown) => failure)
check(error instanceof ResponseError && error.response.status === 404, 'get a deleted link')

import { expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { makeMember } from '../support/members.ts'

const LINKS = '/app/links'

test('a URL within a shared text is in the form, without the signs around it', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const shared = 'https://example.com/wiki/Foo_(bar)'
  for (const query of [
    { text: `Look at this (${shared}), now` },
    { url: '', text: `「${shared}」と言った` },
    { url: `Title – ${shared}…` },
  ]) {
    const page = await free.get(`${LINKS}?${new URLSearchParams(query)}`)
    expect(page.text).toContain(`value="${shared}"`)
  }
})

test('a shared title is in the form, cut to the characters that a title may have', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const titleOf = async (title: string) => {
    const { text } = await free.get(`${LINKS}?${new URLSearchParams({ url: 'a', title })}`)
    return /<input [^>]*name="title"[^>]*value="([^"]*)"/.exec(text)?.[1]
  }
  expect(await titleOf(' Menü "A" ')).toBe('Menü &quot;A&quot;')
  expect(await titleOf('🎄'.repeat(201))).toBe('🎄'.repeat(200))
})

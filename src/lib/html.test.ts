import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { attributes, type Html, html } from './html.ts'

const shown = (markup: Html) => markup.toString()

test('text is escaped, markup of our own is not', () => {
  const bad = `<img src=x onerror=alert(1)> & "'`
  const escaped = '&lt;img src=x onerror=alert(1)&gt; &amp; &quot;&#39;'
  expect(shown(html`<p>${bad}</p>`)).toBe(`<p>${escaped}</p>`)
  expect(shown(html`<p title="${bad}">${html`<b>${bad}</b>`}</p>`)).toBe(
    `<p title="${escaped}"><b>${escaped}</b></p>`,
  )
})

test('lists are joined; null, undefined and truth values show nothing', () => {
  expect(shown(html`<ul>${[1, html`<li>`, null, undefined, true, false, ['a', '<']]}</ul>`)).toBe(
    '<ul>1<li>a&lt;</ul>',
  )
})

test.each([
  'javascript:alert(1)',
  ' javascript:alert(1)',
  'JAVASCRIPT:x',
  'data:text/html,x',
  'vbscript:x',
  'java\tscript:x',
  'x',
])('the address %j leads nowhere', (address) => {
  expect(shown(html`<a href="${address}">x</a>`)).toBe('<a href="#">x</a>')
  expect(shown(html`<a ${attributes({ href: address })}>x</a>`)).toBe('<a href="#">x</a>')
})

test.each(['https://example.com/?a=1', '/app/links', '?page=2', '#top', 'mailto:a@example.com'])(
  'the address %j stays',
  (address) => {
    expect(shown(html`<a href="${address}">x</a>`)).toBe(`<a href="${address}">x</a>`)
  },
)

test('characters that hide text or change its direction are shown percent-encoded', () => {
  const url = 'https://example.com/\u202egpj.exe\u2066\u200b\ufeff\u0000'
  expect(shown(html`<td title="${url}">${url}</td>`)).toBe(
    '<td title="https://example.com/%E2%80%AEgpj.exe%E2%81%A6%E2%80%8B%EF%BB%BF%00">' +
      'https://example.com/%E2%80%AEgpj.exe%E2%81%A6%E2%80%8B%EF%BB%BF%00</td>',
  )
  expect(shown(html`<pre>${'a\tb\r\nc עברית'}</pre>`)).toBe('<pre>a\tb\r\nc עברית</pre>')
})

const INVISIBLE =
  '00AD 034F 061C 115F 1160 180E 2028 2029 202A 2063 2069 206A 3164 FFA0 E0001 E0041 E007F'

test.each(INVISIBLE.split(' '))(
  'the invisible character U+%s is shown percent-encoded',
  (number) => {
    const sign = String.fromCodePoint(Number.parseInt(number, 16))
    expect(shown(html`<p>pay${sign}pal</p>`)).toBe(`<p>pay${encodeURIComponent(sign)}pal</p>`)
  },
)

test('joiners and variation selectors stay in words and emoji', () => {
  const words = 'می\u200cخواهم ❤\ufe0f 👩\u200d🚀'
  expect(shown(html`<p>${words}</p>`)).toBe(`<p>${words}</p>`)
})

test('a value that cannot be made safe is a fault of the template', () => {
  const text = 'x'
  for (const build of [
    () => html`<p class=${text}>`,
    () => html`<p class='${text}'>`,
    () => html`<p ${text}>`,
    () => html`<p onclick="${text}">`,
    () => html`<p style="${text}">`,
    () => html`<p title="${html`<b>`}">`,
    () => html`<p title="`,
    () => attributes({ 'a onclick': 'x' }),
    () => attributes({ onclick: 'x' }),
    () => attributes({ style: 'x' }),
  ]) {
    expect(build).toThrow('assertion failed')
  }
})

test('whatever the value, it makes no tag and no attribute', () => {
  const nasty = fc.stringMatching(/^[<>"'&=/ a-z\u202e\n`]*$/)
  fc.assert(
    fc.property(nasty, (text) => {
      const page = shown(html`<p title="${text}" ${attributes({ lang: text })}>${text}</p>`)
      const inside = /^<p title="([^"<>']*)" lang="([^"<>']*)">([^"<>']*)<\/p>$/.exec(page)
      expect(inside).not.toBeNull()
      expect(page).not.toContain('\u202e')
    }),
  )
})

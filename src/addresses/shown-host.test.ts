import { expect, test } from 'bun:test'
import { readableHost } from './shown-host.ts'

const encoded = (host: string) => new URL(`https://${host}/`).host

test.each([
  'münchen.example',
  'café-grün.example:8443',
  'tiếng-việt.example',
  'łódź.example',
  '食べ物.example',
  'キャンペーン.example',
  '한국.example',
  '中文.example',
  'пример.example',
  'яндекс.example',
  'παράδειγμα.example',
  'مثال.example',
  'דוגמה.example',
  'उदाहरण.example',
  'ตัวอย่าง.example',
  'a.münchen.b.пример.example',
])('%s is shown in Unicode', (host) => {
  expect(readableHost(encoded(host))).toBe(host)
  expect(encoded(host)).not.toBe(host)
})

test.each([
  { why: 'Cyrillic within Latin', host: 'bаnk.example' },
  { why: 'Latin within Cyrillic', host: 'приmер.example' },
  { why: 'Greek within Latin', host: 'gοοgle.example' },
  { why: 'only Cyrillic letters that look Latin', host: 'аррӏе.example' },
  { why: 'the same with a digit', host: 'рауса1.example' },
  { why: 'only Greek letters that look Latin', host: 'νοικ.example' },
  { why: 'only Armenian letters that look Latin', host: 'հօս.example' },
  { why: 'an alpha of the phonetic alphabet', host: 'bɑnk.example' },
  { why: 'an i without dot', host: 'ısbank.example' },
  { why: 'a mark that hides a letter', host: 'bank\u0338.example' },
  { why: 'Latin and Chinese', host: 'bank中文.example' },
  { why: 'a middle dot', host: 'l·l.example' },
  { why: 'digits that look like letters', host: 'bank۰۱.example' },
  { why: 'letters of no living language', host: 'ᏚᎢ.example' },
])('a label with $why stays encoded', ({ host }) => {
  expect(readableHost(encoded(host))).toBe(encoded(host))
  expect(readableHost(encoded(`grün.${host}`))).toBe(`grün.${encoded(host)}`)
})

test.each(['xn--', 'xn---', 'xn--zzzzzz---', 'xn--a', '[::1]:80', '127.0.0.1', 'a.b'])(
  '%s is shown as it is',
  (host) => {
    expect(readableHost(host)).toBe(host)
  },
)

import { expect, test } from 'bun:test'
import { parsePrintOptions } from '../draw/options.ts'
import { renderQr } from '../draw/render.ts'
import { readable, withCaption } from './content.ts'

/** Addresses as people type them. */

const addresses = [
  ['https://go.example/SPRING26', 'go.example/SPRING26'],
  ['http://go.example:8080/s/SPRING26', 'go.example:8080/s/SPRING26'],
  ['https://go.example/%E3%83%A1%E3%83%8B%E3%83%A5%E3%83%BC-51', 'go.example/メニュー-51'],
  ['https://go.example/men%C3%BC', 'go.example/menü'],
  ['https://go.example/a%2Bb%26c', 'go.example/a+b&c'],
  ['https://xn--mnchen-3ya.example/SPRING26', 'münchen.example/SPRING26'],
  // It looks like `apple`, and nobody would type other letters.
  ['https://xn--80ak6aa92e.example/SPRING26', 'xn--80ak6aa92e.example/SPRING26'],
  ['https://go.example/50%25', ''],
  ['https://go.example/a%E2%80%8Bb', ''],
] as const

test.each(addresses)('%s reads %s', (address, text) => {
  expect(readable(address)).toBe(text)
})

test.each(['png', 'svg', 'pdf'])(
  'a %s has the address below the code whole or not at all',
  (format) => {
    const text = 'https://go.example/SPRING26'
    const render = (caption: string, address: string) =>
      Buffer.from(renderQr(text, withCaption(parsePrintOptions({ format, caption }), address)))
    const none = render('', text)
    expect(render('1', text).equals(none)).toBe(false)
    expect(render('1', 'https://go.example/%E3%83%A1%E3%83%8B-51').equals(none)).toBe(true)
    const german = 'https://go.example/men%C3%BC'
    expect(render('1', german).equals(render('go.example/menü', german))).toBe(true)
  },
)

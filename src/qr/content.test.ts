import { expect, test } from 'bun:test'
import { temporaryFolder } from '../../test/support/folder.ts'
import { parsePrintOptions } from '../draw/options.ts'
import { readable } from './content.ts'
import { renderer } from './renderer.ts'

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
  'a %s has the address below the code whole or not at all, and a text of its own or none',
  async (format) => {
    using folder = temporaryFolder()
    const { render } = renderer({ dir: folder.path, fonts: [] })
    const text = 'https://go.example/SPRING26'
    const draw = (caption: string, address: string) =>
      render({ text, address, options: parsePrintOptions({ format, caption }) })
    const none = await draw('', text)
    expect(await draw('1', text)).not.toEqual(none)
    expect(await draw('1', 'https://go.example/%E3%83%A1%E3%83%8B-51')).toEqual(none)
    const german = 'https://go.example/men%C3%BC'
    expect(await draw('1', german)).toEqual(await draw('go.example/menü', german))
    expect(await draw('Menü メニ', text)).toEqual({ missing: ['メ', 'ニ'] })
  },
)

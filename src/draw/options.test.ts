import { expect, test } from 'bun:test'
import { z } from 'zod'
import { invalid } from '../../test/support/refusals.ts'
import { AppError } from '../errors.ts'
import { checkColor, parseQrOptions, QrQuery, qrQueryOf } from './options.ts'

const DEFAULTS = {
  format: 'png',
  size: 512,
  dark: '#1a2e4f',
  light: '#ffffff',
  margin: 4,
  level: 'M',
  logo: false,
  caption: '',
} as const

// spec: GET /api/qr/{code} | format
// spec: GET /api/qr/{code} | size
// spec: GET /api/qr/{code} | dark
// spec: GET /api/qr/{code} | light
test('without parameters the image is a PNG of 512 pixels, #1a2e4f on #ffffff', () => {
  expect(parseQrOptions({})).toEqual(DEFAULTS)
  expect(parseQrOptions({ size: undefined, utm_source: 'mail' })).toEqual(DEFAULTS)
})

const accepted = [
  { query: 'format=png', options: {} },
  { query: 'format=svg', options: { format: 'svg' } },
  { query: 'size=64', options: { size: 64 } },
  { query: 'size=2048', options: { size: 2048 } },
  { query: 'dark=%23000000', options: { dark: '#000000' } },
  { query: 'dark=a1B2c3', options: { dark: '#a1b2c3' } },
  { query: 'dark=%23F0a', options: { dark: '#ff00aa' } },
  { query: 'light=1a9', options: { light: '#11aa99' } },
  { query: 'light=ABCDEF', options: { light: '#abcdef' } },
  { query: 'margin=0', options: { margin: 0 } },
  { query: 'margin=16', options: { margin: 16 } },
  { query: 'level=L', options: { level: 'L' } },
  { query: 'level=H&logo=0', options: { level: 'H' } },
  { query: 'logo=1', options: { logo: true, level: 'H' } },
  { query: 'logo=1&level=L', options: { logo: true, level: 'H' } },
  { query: 'caption=1', options: { caption: '1' } },
  { query: 'caption=', options: {} },
  { query: 'caption=+Scan+me!+', options: { caption: 'Scan me!' } },
  { query: `caption=${'~'.repeat(40)}`, options: { caption: '~'.repeat(40) } },
  { query: 'caption=Grüße', options: { caption: 'Grüße' } },
  { query: 'caption=Cafe\u0301', options: { caption: 'Café' } },
  { query: 'caption=Σαρώστε με', options: { caption: 'Σαρώστε με' } },
  { query: 'caption=Меню «дня»', options: { caption: 'Меню «дня»' } },
  { query: 'caption=Quét mã để đặt món', options: { caption: 'Quét mã để đặt món' } },
  { query: 'mm=20', options: { mm: 20 } },
  { query: 'mm=37.5', options: { mm: 37.5 } },
  { query: 'transparent=0', options: {} },
  { query: 'transparent=1', options: { transparent: true } },
] as const

test.each(accepted)('the query $query is accepted', ({ query, options }) => {
  expect(parseQrOptions(parameters(query))).toEqual({ ...DEFAULTS, ...options })
})

const badSizes = [
  '',
  ' ',
  '63',
  '2049',
  '0',
  '-64',
  '+512',
  '512.0',
  '512.5',
  '1e3',
  '0x10',
  '0x200',
  '0512',
  '00064',
  ' 512',
  '512 ',
  '512px',
  '5_12',
  '٦٤٠',
  '512\n',
  'NaN',
  'Infinity',
  '64,100',
  '99999999999999999999',
]

const badColors = [
  '',
  '#',
  'red',
  '#12',
  '#1234',
  '#12345',
  '1234567',
  '#12345678',
  '##123',
  '#ggg',
  '%23fff',
  'fff ',
  ' fff',
  '#fff\n',
  '１２３',
  'rgb(0,0,0)',
]

const badFormats = ['', 'PNG', 'Svg', 'jpg', 'png ', 'image/png', 'toString']

const badMargins = ['', '17', '-1', '4.0', '04', '1e1', ' 4', '٤', 'wide', '100']
const badLevels = ['', 'm', 'X', 'LM', 'toString']
const badLogos = ['', '2', 'true', 'https://example.com/logo.png']
const badCaptions = ['~'.repeat(41), 'ü'.repeat(41)]
const badMillimetres = ['', '4', '901', '20.55', '-20', '2e1', '20mm', ' 20', '020.', '١٢']
const badFlags = ['', '2', 'true']

const refusals = [
  ...badMargins.map((value) => ({ name: 'margin' as const, value })),
  ...badLevels.map((value) => ({ name: 'level' as const, value })),
  ...badLogos.map((value) => ({ name: 'logo' as const, value })),
  ...badCaptions.map((value) => ({ name: 'caption' as const, value })),
  ...badMillimetres.map((value) => ({ name: 'mm' as const, value })),
  ...badFlags.map((value) => ({ name: 'transparent' as const, value })),
  ...badSizes.map((value) => ({ name: 'size' as const, value })),
  ...badFormats.map((value) => ({ name: 'format' as const, value })),
  ...badColors.flatMap((value) => [
    { name: 'dark' as const, value },
    { name: 'light' as const, value },
  ]),
].map(({ name, value }) => ({ name, query: `${name}=${encodeURIComponent(value)}` }))

// design: 4.10 refusals
test.each(refusals)('the query $query is refused with a message of its own', ({ name, query }) => {
  expect(refusalOf(parameters(query))).toMatchObject({
    code: 'invalid_value',
    status: 400,
    message: invalid(name),
  })
})

const controls = ['two\nlines', '\u0000', 'a\u202eb', '\ud800', 'a\u2028b', '\uffff']

test.each(controls)('a caption with control characters is refused: %j', (caption) => {
  expect(refusalOf({ caption }).message).toEqual(invalid('caption'))
})

test('a caption can be in any script: the fonts decide later', () => {
  for (const caption of ['メニュー', 'قائمة', 'می\u200cخواهم', '👩\u200d👧', 'क्\u200dष']) {
    expect(parseQrOptions({ caption }).caption).toBe(caption)
  }
})
const unreadable = [
  { dark: '#fafafa', light: '#ffffff' },
  { dark: '#ffffff', light: '#ffffff' },
  { dark: '#ffffff', light: '#000000' },
  { dark: '#1a2e4f', light: '#000000' },
  { dark: '#777777', light: '#888888' },
  { dark: '#ffee00', light: '#ffffff' },
  { dark: '#ffee00', transparent: '1', light: '#ffffff' },
  { dark: '#eeeeee', transparent: '1', light: '#ffffff', format: 'svg' },
]

test.each(unreadable)('readers cannot tell $dark from $light: refused', (query) => {
  expect(refusalOf(query)).toMatchObject({
    status: 400,
    message: invalid('dark'),
  })
})

test('a parameter that is no text at all, like a repeated one, is refused with the same message', () => {
  for (const name of new Set(refusals.map((refusal) => refusal.name))) {
    const query: Record<string, never> = JSON.parse(`{"${name}":["64","64"]}`)
    expect(refusalOf(query).message).toEqual(invalid(name))
  }
})

test('of several bad parameters the first in the order of the spec is named', () => {
  expect(refusalOf({ light: 'x', dark: 'x', size: 'x', format: 'x' }).message).toEqual(
    invalid('format'),
  )
  expect(refusalOf({ light: 'x', dark: 'x', size: 'x' }).message).toEqual(invalid('size'))
  expect(refusalOf({ light: 'x', dark: 'x' }).message).toEqual(invalid('dark'))
})

test('an svg ignores the size, even a bad one, but not a bad color', () => {
  expect(parseQrOptions({ format: 'svg', size: '64' })).toEqual({ ...DEFAULTS, format: 'svg' })
  expect(parseQrOptions({ format: 'svg', size: 'huge' })).toEqual({ ...DEFAULTS, format: 'svg' })
  expect(refusalOf({ format: 'svg', dark: 'x' }).message).toEqual(invalid('dark'))
})

test('OpenAPI describes the size as an integer with its bounds, and every default', () => {
  const schema = z.toJSONSchema(QrQuery, { target: 'openapi-3.0', io: 'input' })
  expect(schema).toMatchObject({
    type: 'object',
    properties: {
      format: { type: 'string', enum: ['png', 'svg'], default: 'png' },
      size: { type: 'integer', minimum: 64, maximum: 2048, default: 512 },
      dark: { type: 'string', default: '#1a2e4f' },
      light: { type: 'string', default: '#ffffff' },
      margin: { type: 'integer', minimum: 0, maximum: 16, default: 4 },
      level: { type: 'string', enum: ['L', 'M', 'Q', 'H'], default: 'M' },
      logo: { type: 'string', enum: ['0', '1'], default: '0' },
      caption: { type: 'string', default: '' },
    },
  })
  expect(schema.required).toBeUndefined()
})

test('a color that did not come through parseQrOptions is checked before it reaches an image', () => {
  for (const { dark, light } of [DEFAULTS, parseQrOptions({ dark: '012def', light: 'ABC' })]) {
    expect(() => checkColor(dark)).not.toThrow()
    expect(() => checkColor(light)).not.toThrow()
  }
  for (const color of ['#ABCDEF', '#abc', 'abcdef', '#abcdef"', '']) {
    expect(() => checkColor(color)).toThrow(RangeError)
  }
})

test.each(accepted)('the options of $query are the same after they were stored', ({ query }) => {
  const options = parseQrOptions(parameters(query))
  expect(parseQrOptions(Object.fromEntries(qrQueryOf(options)))).toEqual(options)
})

test('default options are an empty query', () => {
  expect(qrQueryOf(parseQrOptions({})).toString()).toBe('')
  expect(qrQueryOf(parseQrOptions({ logo: '1' })).toString()).toBe('logo=1')
})

function parameters(query: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(query))
}

function refusalOf(query: Record<string, string>): AppError {
  try {
    parseQrOptions(query)
  } catch (error) {
    if (error instanceof AppError) return error
  }
  throw new Error('nothing was refused')
}

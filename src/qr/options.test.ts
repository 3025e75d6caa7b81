import { expect, test } from 'bun:test'
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { checkColor, parseQrOptions, QrQuery } from './options.ts'

const DEFAULTS = { format: 'png', size: 512, dark: '#1a2e4f', light: '#ffffff' } as const

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
  { query: 'dark=%23FfF', options: { dark: '#ffffff' } },
  { query: 'light=1a9', options: { light: '#11aa99' } },
  { query: 'light=ABCDEF', options: { light: '#abcdef' } },
] as const

test.each(accepted)('the query $query is accepted', ({ query, options }) => {
  expect(parseQrOptions(parameters(query))).toEqual({ ...DEFAULTS, ...options })
})

const MESSAGES = {
  format: 'Invalid format: must be png or svg',
  size: 'Invalid size: must be an integer between 64 and 2048',
  dark: 'Invalid dark: must be a hex color like #1a2e4f',
  light: 'Invalid light: must be a hex color like #1a2e4f',
}

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

const refusals = [
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
    message: MESSAGES[name],
  })
})

test('a parameter that is no text at all, like a repeated one, is refused with the same message', () => {
  for (const [name, message] of Object.entries(MESSAGES)) {
    const query: Record<string, never> = JSON.parse(`{"${name}":["64","64"]}`)
    expect(refusalOf(query).message).toBe(message)
  }
})

test('of several bad parameters the first in the order of the spec is named', () => {
  expect(refusalOf({ light: 'x', dark: 'x', size: 'x', format: 'x' }).message).toBe(MESSAGES.format)
  expect(refusalOf({ light: 'x', dark: 'x', size: 'x' }).message).toBe(MESSAGES.size)
  expect(refusalOf({ light: 'x', dark: 'x' }).message).toBe(MESSAGES.dark)
})

test('an svg ignores the size, even a bad one, but not a bad color', () => {
  expect(parseQrOptions({ format: 'svg', size: '64' })).toEqual({ ...DEFAULTS, format: 'svg' })
  expect(parseQrOptions({ format: 'svg', size: 'huge' })).toEqual({ ...DEFAULTS, format: 'svg' })
  expect(refusalOf({ format: 'svg', dark: 'x' }).message).toBe(MESSAGES.dark)
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
    },
  })
  expect(schema.required).toBeUndefined()
})

test('a color that did not come through parseQrOptions is checked before it reaches an image', () => {
  for (const { dark, light } of [DEFAULTS, parseQrOptions({ dark: 'ABC', light: '012def' })]) {
    expect(() => checkColor(dark)).not.toThrow()
    expect(() => checkColor(light)).not.toThrow()
  }
  for (const color of ['#ABCDEF', '#abc', 'abcdef', '#abcdef"', '']) {
    expect(() => checkColor(color)).toThrow(RangeError)
  }
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

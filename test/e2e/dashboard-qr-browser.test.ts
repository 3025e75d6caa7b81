import { expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { eventually, testApp } from '../support/app.ts'
import { browserTests, openAs, violations } from '../support/browser.ts'
import { decodeQr, pixelAt } from '../support/decode-qr.ts'
import { pngLogo, RED_SVG } from '../support/logos.ts'
import { makeMember } from '../support/members.ts'

/** The upload of a logo, and changed options of codes, in a real browser. */

const { test, browser } = browserTests()

const fileOf = (name: string, content: string | Uint8Array) => ({
  name,
  mimeType: name.endsWith('.svg') ? 'image/svg+xml' : 'image/png',
  buffer: Buffer.from(content as string),
})

async function openSettings(options = {}) {
  const app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await app.claim('SPRING26')
  const opened = await openAs(browser(), { app, visitor: free, options })
  await opened.page.goto(`${app.url}/app/qr`)
  const middle = async () => {
    const { bytes } = await app.call('GET', '/api/qr/SPRING26?logo=1')
    const { text, bitmap } = await decodeQr(bytes)
    expect(text).toBe('http://hop.test/SPRING26')
    return pixelAt(bitmap, 256, 256)
  }
  const close = async () => {
    await opened[Symbol.asyncDispose]()
    await app[Symbol.asyncDispose]()
  }
  return { ...opened, middle, [Symbol.asyncDispose]: close }
}

test('the browser draws an SVG as the PNG that is uploaded', async () => {
  await using it = await openSettings()
  const { page, problems } = it
  await page.getByText('or an SVG').waitFor()
  await page.getByLabel('File').setInputFiles(fileOf('Logo.svg', RED_SVG))
  // `waitForFunction` would evaluate a text in the page, which its policy refuses.
  await eventually('the file is drawn', () =>
    page.evaluate<boolean>("document.querySelector('[data-logo]').checkValidity()"),
  )
  expect(await page.evaluate("document.querySelector('[data-logo]').files[0].type")).toBe(
    'image/png',
  )
  await page.getByRole('button', { name: 'Upload' }).click()
  await page.getByText('The logo is saved.').waitFor()
  expect(await it.middle()).toBe('#cc0000')
  expect(problems).toEqual([])
})

test('an SVG that the browser cannot draw is not sent, and a PNG can be chosen instead', async () => {
  await using it = await openSettings()
  const { page } = it
  const file = page.getByLabel('File')
  await file.setInputFiles(fileOf('logo.svg', RED_SVG.slice(0, -5)))
  await eventually('the file is refused', () =>
    page.evaluate<boolean>(
      "document.querySelector('[data-logo]').validationMessage.includes('cannot draw')",
    ),
  )
  await page.getByRole('button', { name: 'Upload' }).click()
  expect(page.url()).toEndWith('/app/qr')
  await file.setInputFiles(fileOf('logo.png', pngLogo(100)))
  await page.getByRole('button', { name: 'Upload' }).click()
  await page.getByText('The logo is saved.').waitFor()
  expect(await it.middle()).toBe('#008844')
})

test('without scripts a PNG can be uploaded, and only that is offered', async () => {
  await using it = await openSettings({ javaScriptEnabled: false })
  const { page } = it
  expect(await page.getByText('or an SVG').isVisible()).toBe(false)
  await page.getByLabel('File').setInputFiles(fileOf('logo.png', pngLogo(100)))
  await page.getByRole('button', { name: 'Upload' }).click()
  await page.getByText('The logo is saved.').waitFor()
  expect(await it.middle()).toBe('#008844')
})

test.each([true, false])(
  'a logo that is added from the page of a link keeps what was chosen there (scripts: %p)',
  async (javaScriptEnabled) => {
    await using it = await openSettings({ javaScriptEnabled })
    const { page } = it
    await page.goto(`${new URL(page.url()).origin}/app/links/SPRING26/qr`)
    await page.getByLabel('Margin (modules)').fill('7')
    await page.getByLabel('Foreground').fill('#0f6b4f')
    await page.getByLabel('Count scans apart as').fill('')
    await page.getByRole('button', { name: 'Add a logo' }).click()
    const upload = async (bytes: Uint8Array) => {
      await page.getByLabel('File').setInputFiles(fileOf('logo.png', bytes))
      await page.getByRole('button', { name: 'Upload' }).click()
    }
    await upload(new Uint8Array(9))
    await page.locator('#field-logo-error').waitFor()
    await upload(pngLogo(100))
    await page.waitForURL(/SPRING26\/qr\?/)
    expect(await page.getByLabel('Margin (modules)').inputValue()).toBe('7')
    expect(await page.getByLabel('Foreground').inputValue()).toBe('#0f6b4f')
    expect(await page.getByLabel('Count scans apart as').inputValue()).toBe('')
    expect(await page.getByLabel('Your logo').isChecked()).toBe(true)
    expect(await page.locator('#qr-preview img').getAttribute('src')).toContain('logo=1')
  },
)

/** A click in a browser whose buttons get no focus by the pointer, also in a closed menu. */
const clickWithoutFocus = (page: Page, name: string) =>
  page
    .locator('button', { hasText: name })
    .evaluate((button) => (button as unknown as { click(): void }).click())

const pages = [
  { path: '/app/links/SPRING26/qr', button: 'SVG, for print', field: 'Margin (modules)' },
  { path: '/app/print', button: 'Download PDF', field: 'Columns' },
  { path: '/app/print', button: 'SVG', field: 'Rows' },
]

test.each(pages)('a change of $path after $button shows the preview again', async (row) => {
  await using it = await openSettings()
  const { page, problems } = it
  const origin = new URL(page.url()).origin
  await page.goto(origin + row.path)
  const download = page.waitForEvent('download')
  await clickWithoutFocus(page, row.button)
  await download
  const paths: string[] = []
  page.on('request', (request) => paths.push(new URL(request.url()).pathname))
  const changed = page.waitForResponse((response) => response.url().includes('=2'))
  await page.getByLabel(row.field).fill('2')
  expect(new URL((await changed).url()).pathname).toBe(row.path)
  await page.locator('#qr-preview img, #sheets img').first().waitFor()
  expect(paths.filter((path) => /labels\.pdf|codes\.zip|qr\.(png|pdf)/.test(path))).toEqual([])
  expect(problems).toEqual([])
})

test('a file is downloaded with the fields as they are, and the code stays in view', async () => {
  await using it = await openSettings()
  const { page, problems } = it
  const origin = new URL(page.url()).origin
  for (const size of [
    { width: 1280, height: 800 },
    { width: 390, height: 844 },
  ]) {
    await page.setViewportSize(size)
    await page.goto(`${origin}/app/links/SPRING26/qr`)
    // Not yet in the preview.
    await page.getByLabel('Margin (modules)').fill('7')
    await page.getByRole('button', { name: 'Download' }).click()
    const asked = page.waitForRequest(/qr\.svg.*margin=7/)
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: /^SVG/ }).click()
    expect(new URL((await asked).url()).searchParams.get('ref')).toBe('qr')
    expect((await download).suggestedFilename()).toBe('SPRING26.svg')
    expect(await page.locator('#download-menu').isVisible()).toBe(false)
    // The form is dim until the preview is replaced.
    await page.locator('#qr-preview img[src*="margin=7"]').waitFor()
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
    for (const part of ['#qr-preview .qr', '[popovertarget=download-menu]']) {
      const box = await page.locator(part).boundingBox()
      expect(box && box.y >= 0 && box.y + box.height <= size.height).toBe(true)
    }
    expect(await violations(page)).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(size.width)
  }
  expect(problems).toEqual([])
})

test('a preset shows the code that it makes, is refused, corrected, saved and chosen again', async () => {
  await using it = await openSettings()
  const { page, problems } = it
  const preview = page.locator('#qr-preview img')
  const src = () => preview.getAttribute('src')
  expect(await src()).toContain('ref=qr')
  await page.getByLabel('Foreground').fill('#eeeeee')
  await page.locator('#qr-error-dark').getByText('Must be much darker').waitFor()
  expect(await preview.count()).toBe(0)
  await page.getByLabel('Foreground').fill('#0f6b4f')
  await preview.waitFor()
  expect(await src()).toContain('dark=%230f6b4f')
  await page.getByLabel('Count scans apart as').fill('')
  await page.getByLabel('Name').fill('x'.repeat(41))
  await page.evaluate("document.querySelector('[name=name]').removeAttribute('maxlength')")
  await page.getByLabel('Name').fill('x'.repeat(41))
  await page.getByRole('button', { name: 'Save preset' }).click()
  await page.locator('#field-name-error').waitFor()
  expect(await page.getByLabel('Count scans apart as').inputValue()).toBe('')
  expect(await page.getByLabel('Foreground').inputValue()).toBe('#0f6b4f')
  await page.getByLabel('Name').fill('Green')
  await page.getByRole('button', { name: 'Save preset' }).click()
  await page.getByText('The preset is saved.').waitFor()
  await page.goto(`${new URL(page.url()).origin}/app/links/SPRING26/qr`)
  await page.getByRole('link', { name: 'Green' }).click()
  await page.waitForURL(/dark=/)
  expect(await page.getByLabel('Foreground').inputValue()).toBe('#0f6b4f')
  // A preset without a word for scans has none.
  expect(await page.getByLabel('Count scans apart as').inputValue()).toBe('')
  expect(problems.filter((text) => !text.includes('422'))).toEqual([])
})

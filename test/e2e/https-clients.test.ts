import { expect } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import puppeteer from 'puppeteer-core'
import type { TestApp } from '../support/app.ts'
import { BROWSER_FLAGS, BROWSER_MS } from '../support/browser.ts'
import { PASSWORD } from '../support/dashboard.ts'
import { temporaryFolder } from '../support/folder.ts'
import { httpsApp, type OwnCertificate, ownCertificate } from '../support/https.ts'
import { freePort } from '../support/ports.ts'
import { findBrowser, testWith } from '../support/tools.ts'

/** Browsers and a scanner with the port for https. */

/** A store of certificates, as browsers have it, that trusts the authority of the tests. */
function trust(database: string, own: OwnCertificate): void {
  mkdirSync(database, { recursive: true })
  const file = join(database, 'authority.pem')
  writeFileSync(file, own.authority)
  const certutil = (...words: string[]) => {
    const { exitCode, stderr } = Bun.spawnSync(['certutil', '-d', `sql:${database}`, ...words])
    if (exitCode !== 0) throw new Error(`certutil: ${stderr}`)
  }
  certutil('-N', '--empty-password')
  certutil('-A', '-n', 'authority', '-t', 'C,,', '-i', file)
}

/** A service whose address has a port, as a browser reaches it here. */
async function start(own: OwnCertificate): Promise<{ app: TestApp; base: string }> {
  const port = String(freePort())
  const base = `https://go.example:${port}`
  const app = await httpsApp(own, { env: { HTTPS_PORT: port, BASE_URL: base } })
  return { app, base }
}

/** The part of both browsers' pages that the walk uses. */
interface BrowserPage {
  goto(url: string): Promise<unknown>
  type(selector: string, text: string): Promise<void>
  url(): string
  content(): Promise<string>
  waitForSelector(selector: string): Promise<unknown>
  keyboard: { press(key: never): Promise<void> }
}

/** Comes without TLS, as long as the browser knows no better, and creates the owner. */
async function walk(page: BrowserPage, { app, base }: { app: TestApp; base: string }) {
  const plain = `http://go.example:${app.url.replace(/^.*:/, '')}`
  await page.goto(plain + new URL(app.setupLink).pathname)
  expect(page.url()).toBe(app.setupLink)
  await page.type('input[type=email]', 'owner@example.com')
  await page.type('input[type=password]', PASSWORD)
  await page.keyboard.press('Enter' as never)
  await page.waitForSelector('.current-user-button, a[href="/app/account/two-factor"]')
  await page.goto(`${base}/app/service`)
  const text = await page.content()
  expect(text).toContain('HTTPS')
  expect(text).toContain('in the certificate')
}

testWith('browser', 'certutil')(
  'Chromium trusts the certificate, signs in over https, and is led there from the other port',
  async () => {
    using own = ownCertificate()
    const served = await start(own)
    await using _ = served.app
    using home = temporaryFolder()
    trust(join(home.path, '.pki/nssdb'), own)
    const browser = await chromium.launch({
      executablePath: findBrowser() ?? '',
      args: [...BROWSER_FLAGS, '--host-resolver-rules=MAP go.example 127.0.0.1'],
      env: { ...process.env, HOME: home.path } as Record<string, string>,
    })
    try {
      const context = await browser.newContext()
      const page = await context.newPage()
      await walk(page, served)
      const cookies = await context.cookies()
      expect(cookies.length).toBeGreaterThan(0)
      for (const { name, secure } of cookies.filter(({ httpOnly }) => httpOnly)) {
        expect([name, secure]).toEqual([expect.stringMatching(/^__Host-/), true])
      }
    } finally {
      await browser.close()
    }
  },
  BROWSER_MS,
)

testWith('firefox', 'certutil')(
  'Firefox trusts the certificate, signs in over https, and is led there from the other port',
  async () => {
    using own = ownCertificate()
    const served = await start(own)
    await using _ = served.app
    using profile = temporaryFolder()
    trust(profile.path, own)
    const browser = await puppeteer.launch({
      browser: 'firefox',
      executablePath: Bun.which('firefox-esr') ?? '',
      userDataDir: profile.path,
      extraPrefsFirefox: {
        'network.captive-portal-service.enabled': false,
        'network.dns.localDomains': 'go.example',
      },
    })
    try {
      await walk((await browser.newPage()) as never, served)
    } finally {
      await browser.close()
    }
  },
  BROWSER_MS,
)

testWith('sslscan')(
  'a scanner finds TLS 1.2 and 1.3 alone, with forward secrecy and authenticated encryption',
  async () => {
    using own = ownCertificate()
    await using app = await httpsApp(own)
    const words = [
      'sslscan',
      '--no-colour',
      '--no-heartbleed',
      `127.0.0.1:${app.tlsUrl.replace(/^.*:/, '')}`,
    ]
    const text = Bun.spawnSync(words).stdout.toString()
    for (const version of ['SSLv2', 'SSLv3', 'TLSv1.0', 'TLSv1.1']) {
      expect(text).toMatch(new RegExp(`${version} +disabled`))
    }
    for (const version of ['TLSv1.2', 'TLSv1.3']) {
      expect(text).toMatch(new RegExp(`${version} +enabled`))
    }
    const suites = [...text.matchAll(/^(?:Preferred|Accepted) +\S+ +\d+ bits +(\S+)/gm)]
    expect(suites.length).toBeGreaterThan(3)
    for (const [, suite = ''] of suites) {
      expect(suite).toMatch(/^(TLS_(AES|CHACHA20)|ECDHE-).*(GCM|POLY1305)/)
    }
    expect(text).toContain('Session renegotiation not supported')
  },
  120_000,
)

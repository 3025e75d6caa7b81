import { expect, test } from 'bun:test'
import type { CertificateStatus } from '../../certificates/status.ts'
import { certificateCard, retryCertificate } from './certificate.ts'

const status: CertificateStatus = {
  source: 'acme',
  names: [
    { name: 'go.example', isActive: true, error: undefined, nextAt: undefined },
    {
      name: 'a.example',
      isActive: false,
      error: 'not <b>reached</b>',
      nextAt: Date.UTC(2026, 2, 1),
    },
  ],
  from: Date.UTC(2026, 1, 1),
  until: Date.UTC(2026, 4, 1),
  renewAt: Date.UTC(2026, 3, 1),
  problem: undefined,
  orders: { issued: 1, failed: 1 },
}

const contextOf = (one: CertificateStatus | undefined, isTried = true) => {
  const logged: string[] = []
  const certificates = one && { status: () => one, retry: () => isTried }
  const log = { info: (event: string) => void logged.push(event) }
  const user = { account: { id: 1 }, csrf: 'token' }
  return { logged, context: { deps: { certificates, log }, user } as never }
}

const textOf = (one: CertificateStatus | undefined) =>
  String(certificateCard(contextOf(one).context) ?? '')

test('each name is shown, with why it waits and a button while one does', () => {
  const text = textOf(status)
  expect(text).toContain('go.example')
  expect(text).toContain('not &lt;b&gt;reached')
  expect(text).toContain('2026-05-01')
  expect(text).toContain('Try now')
  const active = status.names.filter(({ isActive }) => isActive)
  expect(textOf({ ...status, names: active })).not.toContain('Try now')
  expect(textOf({ ...status, problem: 'the authority is down' })).toContain('the authority is down')
})

test('a service without https has no such card', () => {
  expect(textOf(undefined)).toBe('')
})

test('a try is logged, and one that comes too early is told', () => {
  const first = contextOf(status)
  expect(retryCertificate(first.context)).toEndWith('done=tried')
  expect(first.logged).toEqual(['certificate.retried'])
  const second = contextOf(status, false)
  expect(retryCertificate(second.context)).toEndWith('done=tried-before')
  expect(second.logged).toEqual([])
})

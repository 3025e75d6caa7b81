import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { operationsOn } from '../../test/support/subjects.ts'
import { migrate } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import { parseQrOptions } from '../draw/options.ts'
import { PRESETS_MAX, qrSettings } from './store.ts'

function openStore() {
  const folder = temporaryFolder()
  const db = openWritable(join(folder.path, 'hopcode.db'))
  migrate(db)
  const close = () => {
    db.close()
    folder[Symbol.dispose]()
  }
  return { db, stored: operationsOn(db, qrSettings), [Symbol.dispose]: close }
}

const by = (accountId: number) => ({ author: { accountId, by: 'operator', now: 5 } as const })
const preset = (name: string, accountId = 1) => ({ ...by(accountId), name, options: 'margin=2' })

test('an account keeps 20 presets, and one of the same name is replaced', () => {
  using it = openStore()
  for (let n = 0; n < PRESETS_MAX; n++) expect(it.stored.savePreset(preset(`P${n}`))).toBe(true)
  expect(it.stored.savePreset(preset('one more'))).toBe(false)
  expect(it.stored.savePreset({ ...preset('P3'), options: 'margin=9' })).toBe(true)
  expect(it.stored.savePreset(preset('one more', 2))).toBe(true)
  const presets = it.stored.listPresets(1)
  expect(presets).toHaveLength(PRESETS_MAX)
  expect(presets.find(({ name }) => name === 'P3')?.options).toEqual(
    parseQrOptions({ margin: '9' }),
  )
})

test('another logo has another key, so no thread draws the old one', () => {
  using it = openStore()
  it.stored.saveLogo({ ...by(1), png: Uint8Array.of(1) })
  const first = it.stored.findLogo(1)?.key
  it.stored.saveLogo({ ...by(1), png: Uint8Array.of(2) })
  expect(it.stored.findLogo(1)?.key).not.toBe(first)
})

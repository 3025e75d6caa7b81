import type { Database } from 'bun:sqlite'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import {
  FOREIGN_ADVICE,
  foreignKey,
  isKeyOf,
  readSecretKey,
  SecretHasher,
} from '../accounts/secrets.ts'
import {
  checkDatabase,
  type Finding,
  note,
  ok,
  problem,
  RESTORE_ADVICE,
} from '../backup/invariants.ts'
import { UNFINISHED } from '../backup/restore.ts'
import { tryUpgrade } from '../backup/upgrade.ts'
import { listOpenFiles } from '../data-folder.ts'
import { databaseFile, openReadonly } from '../db/open.ts'
import { journalFile } from '../hits/hits.ts'
import { findJournalPosition } from '../hits/store.ts'
import { JournalDamaged, JournalFile } from '../hot/journal-file.ts'
import { RUN_RESTORE } from '../lib/data-error.ts'
import { print } from '../lib/log.ts'
import { setThreadPriority } from '../lib/priority.ts'
import { messageOf } from '../lib/thread.ts'
import { imageFolder } from '../qr/files.ts'
import { ProblemsFound } from './errors.ts'
import { readConfigOfFolder } from './folder.ts'
import { type Flag, JSON_OBJECT } from './options.ts'
import { Progress } from './progress.ts'

const CACHE_KIB = 16_384

export function addCheckCommand(program: Command): void {
  program
    .command('check')
    .description('check data integrity (safe while running)')
    .option('--upgrade', 'also try on a copy what the first start of this release would do')
    .option(...JSON_OBJECT)
    .action(async ({ upgrade, json }) => {
      const { dataDir } = readConfigOfFolder()
      setThreadPriority('background')
      const findings = await findAll(dataDir, { upgrade })
      const isOk = !findings.some(isProblem)
      const report = { ok: isOk, data_dir: dataDir, findings }
      print(json ? JSON.stringify(report) : describe(findings))
      if (!isOk) throw new ProblemsFound()
    })
}

const isProblem = ({ status }: Finding) => status === 'problem'

/** Checks the data folder without changing it, also while a service uses it. */
async function findAll(dataDir: string, { upgrade }: { upgrade: Flag }): Promise<Finding[]> {
  using progress = new Progress()
  const file = databaseFile(dataDir)
  if (!statSync(file, { throwIfNoEntry: false })?.size) {
    const advice = `Is DATA_DIR right? The first start creates it. If it is lost: ${RUN_RESTORE}`
    return [problem('database file', `${file} is missing`, advice)]
  }
  const findings: Finding[] = []
  let db: Database | undefined
  try {
    db = openReadonly(file, { cacheKiB: CACHE_KIB })
    progress.step('Checking the database file')
    for (const finding of checkDatabase(db)) {
      findings.push(finding)
      progress.step(`Checking the database (${findings.length} done)`)
    }
  } catch (error) {
    const says = `${file} cannot be read: ${messageOf(error)}`
    findings.push(problem('database file', says, RESTORE_ADVICE))
  }
  try {
    const isReadable = !findings.some(isProblem)
    findings.push(checkKey(dataDir, isReadable ? db : undefined))
    findings.push(checkModes(dataDir))
    if (db && isReadable) {
      findings.push(checkJournal(dataDir, db))
      progress.step('Checking the QR images')
      findings.push(await checkImages(imageFolder(dataDir), db))
      if (upgrade) {
        progress.step('Trying the upgrade')
        findings.push(...tryUpgrade(db))
      }
    }
  } finally {
    db?.close()
  }
  return [...findings, ...noteOldFolders(dataDir)]
}

function checkKey(dataDir: string, db: Database | undefined): Finding {
  const name = 'secret key'
  try {
    const hasher = new SecretHasher(readSecretKey(dataDir, { fresh: false }))
    if (db && !isKeyOf(db, hasher)) return problem(name, foreignKey(dataDir), FOREIGN_ADVICE)
  } catch (error) {
    return problem(name, messageOf(error), RESTORE_ADVICE)
  }
  return ok(name, 'it is whole, and belongs to the database')
}

function checkModes(dataDir: string): Finding {
  const check = 'file modes'
  const open = listOpenFiles(dataDir)
  if (open.length === 0) return ok(check, 'no other user can read or write a file')
  const says = `other users can read or write ${open.join(', ')} in ${dataDir}`
  const advice = 'Start the service, which makes its own files private, or run chmod 600 on each.'
  return problem(check, says, advice)
}

const NEW_JOURNAL =
  'The next start renames it and creates a new one: its hits are then not counted.'

function checkJournal(dataDir: string, db: Database): Finding {
  const name = 'hit journal'
  const file = journalFile(dataDir)
  if (!existsSync(file)) return note(name, 'there is none yet; the next start creates it')
  try {
    using journal = JournalFile.open(file)
    const committed = findJournalPosition(db)
    if (committed?.journalId !== journal.id) {
      return problem(name, `${file} belongs to another database`, NEW_JOURNAL)
    }
    const hits = journal.recover(committed.position).length
    return ok(name, `it is whole; ${hits} hits in it are not counted yet`)
  } catch (error) {
    if (error instanceof JournalDamaged) {
      return problem(name, `${file} is not a whole journal`, NEW_JOURNAL)
    }
    return problem(name, messageOf(error), 'Let the user of the service read and write it.')
  }
}

const NAMED_MAX = 3

/**
 * Checks that each stored image belongs to a code. Their content is not read: an image that is
 * deleted is created again on request.
 */
async function checkImages(dir: string, db: Database): Promise<Finding> {
  const check = 'images'
  if (!existsSync(dir)) return note(check, 'none is stored yet; each is created on request')
  const find = db.prepare<{ id: number }, [string]>('SELECT id FROM links WHERE code = ?')
  const hasLink = (image: string) => find.get(basename(image, '.png')) !== null
  let stored = 0
  const orphans: string[] = []
  for await (const { name } of await opendir(dir)) {
    if (!name.endsWith('.png')) continue
    stored++
    if (!hasLink(name)) orphans.push(name)
  }
  // Meanwhile a code may have been claimed, or the image of a deleted code removed.
  const left = orphans.filter((image) => !hasLink(image) && existsSync(join(dir, image)))
  if (left.length === 0) return ok(check, `${stored} stored, each of a code`)
  const says =
    `${left.length} without a code: ${named(left)}. A process that was killed may leave the ` +
    'image of a deleted code. No client can request it, and you can delete it'
  return note(check, says)
}

const named = (images: readonly string[]): string =>
  images.slice(0, NAMED_MAX).join(', ') + (images.length > NAMED_MAX ? ', …' : '')

function* noteOldFolders(dataDir: string): Generator<Finding> {
  const entries = readdirSync(dataDir)
  const oldFile = /^before-restore-|\.before-|^hits\.journal\.damaged-/
  const names = entries.filter((name) => oldFile.test(name)).join(', ')
  if (names)
    yield note('old files', `kept from before a restore or an upgrade, or damaged: ${names}`)
  if (entries.includes(UNFINISHED)) {
    const says = `${UNFINISHED} is left from a restore that was killed; the next start removes it`
    yield note('old files', says)
  }
}

const NOT_VERIFIED =
  'Not verified: the content of hashes, times, hit counts, search entries and images. ' +
  'A changed bit there is not detected.'

const LABELS = { ok: 'ok     ', note: 'note   ', problem: 'PROBLEM' } as const

function describe(findings: readonly Finding[]): string {
  const lines = findings.map((finding) => {
    const line = `${LABELS[finding.status]}  ${finding.check}: ${finding.says}`
    return finding.status === 'problem' ? `${line}\n         → ${finding.advice}` : line
  })
  const problems = findings.filter(isProblem).length
  const verdict =
    problems === 0 ? 'All is well.' : `${problems} ${problems === 1 ? 'problem' : 'problems'}.`
  return [...lines, NOT_VERIFIED, verdict].join('\n')
}

import type { Database } from 'bun:sqlite'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import {
  FOREIGN_ADVICE,
  foreignKey,
  isKeyOf,
  readSecretKey,
  SecretHasher,
} from '../accounts/secrets.ts'
import { checkImages } from '../backup/images.ts'
import { checkDatabase, type Finding, RESTORE_ADVICE } from '../backup/invariants.ts'
import { UNFINISHED } from '../backup/switch.ts'
import { listOpenFiles } from '../db/modes.ts'
import { databaseFile, openReadonly } from '../db/open.ts'
import { journalFile } from '../hits/hits.ts'
import { findJournalPosition } from '../hits/store.ts'
import { JournalDamaged, JournalFile } from '../hot/journal-file.ts'
import { setThreadPriority } from '../lib/priority.ts'
import { messageOf } from '../lib/thread.ts'

const CACHE_KIB = 16_384

export interface Report {
  ok: boolean
  /** For standard output. */
  text: string
}

/** Looks the data folder over without changing it; a service may be serving it meanwhile. */
export async function check(dataDir: string, { json }: { json: boolean }): Promise<Report> {
  setThreadPriority('background')
  const findings = await lookOver(dataDir)
  const ok = findings.every(({ status }) => status !== 'problem')
  const text = json ? JSON.stringify({ ok, data_dir: dataDir, findings }) : describe(findings)
  return { ok, text }
}

async function lookOver(dataDir: string): Promise<Finding[]> {
  const file = databaseFile(dataDir)
  if (!statSync(file, { throwIfNoEntry: false })?.size) {
    const says = `${file} is missing`
    const advice = 'Is DATA_DIR right? A first start makes it; a backup brings it back.'
    return [{ check: 'database file', status: 'problem', says, advice }]
  }
  const findings: Finding[] = []
  let db: Database | undefined
  try {
    db = openReadonly(file, { cacheKiB: CACHE_KIB })
    findings.push(...checkDatabase(db))
  } catch (error) {
    const says = `${file} cannot be read: ${messageOf(error)}`
    findings.push({ check: 'database file', status: 'problem', says, advice: RESTORE_ADVICE })
  }
  try {
    const isReadable = findings.every(({ status }) => status !== 'problem')
    findings.push(checkKey(dataDir, isReadable ? db : undefined))
    findings.push(checkModes(dataDir))
    if (db && isReadable) {
      findings.push(checkJournal(dataDir, db))
      findings.push(await checkImages(join(dataDir, 'cdn', 'qr'), db))
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
    if (db && !isKeyOf(db, hasher)) {
      const says = foreignKey(dataDir)
      return { check: name, status: 'problem', says, advice: FOREIGN_ADVICE }
    }
  } catch (error) {
    return { check: name, status: 'problem', says: messageOf(error), advice: RESTORE_ADVICE }
  }
  return { check: name, status: 'ok', says: 'it is whole, and belongs to the database' }
}

function checkModes(dataDir: string): Finding {
  const check = 'file modes'
  const open = listOpenFiles(dataDir)
  if (open.length === 0) {
    return { check, status: 'ok', says: 'no other user can read or write a file' }
  }
  const says = `other users can read or write ${open.join(', ')} in ${dataDir}`
  const advice = 'Start the service, which closes its own files, or run chmod 600 on each.'
  return { check, status: 'problem', says, advice }
}

const NEW_JOURNAL =
  'The next start renames it and creates a new one: its hits are then not counted.'

function checkJournal(dataDir: string, db: Database): Finding {
  const name = 'hit journal'
  const file = journalFile(dataDir)
  if (!existsSync(file)) {
    return { check: name, status: 'note', says: 'there is none yet; the next start makes it' }
  }
  try {
    using journal = JournalFile.open(file)
    const mark = findJournalPosition(db)
    if (mark?.journalId !== journal.id) {
      return {
        check: name,
        status: 'problem',
        says: `${file} belongs to another database`,
        advice: NEW_JOURNAL,
      }
    }
    const hits = journal.recover(mark.position).linkIds.length
    return { check: name, status: 'ok', says: `it is whole; ${hits} hits in it wait to be counted` }
  } catch (error) {
    if (error instanceof JournalDamaged) {
      const says = `${file} is not a whole journal`
      return { check: name, status: 'problem', says, advice: NEW_JOURNAL }
    }
    const advice = 'Let the user of the service read and write it.'
    return { check: name, status: 'problem', says: messageOf(error), advice }
  }
}

function noteOldFolders(dataDir: string): Finding[] {
  const findings: Finding[] = []
  const entries = readdirSync(dataDir)
  const kept = /^before-restore-|\.before-|^hits\.journal\.damaged-/
  const names = entries.filter((name) => kept.test(name))
  if (names.length > 0) {
    const says = `kept from before a restore or an upgrade, or damaged: ${names.join(', ')}`
    findings.push({ check: 'old files', status: 'note', says })
  }
  if (entries.includes(UNFINISHED)) {
    const says = `${UNFINISHED} is left of a restore that was killed; the next start removes it`
    findings.push({ check: 'old files', status: 'note', says })
  }
  return findings
}

const NOT_VERIFIED =
  'Not verified: the content of hashes, times, hit counts, search entries and images. ' +
  'A bit that a fault changed there is not found.'

const LABELS = { ok: 'ok     ', note: 'note   ', problem: 'PROBLEM' } as const

function describe(findings: readonly Finding[]): string {
  const lines = findings.map((finding) => {
    const line = `${LABELS[finding.status]}  ${finding.check}: ${finding.says}`
    return finding.status === 'problem' ? `${line}\n         → ${finding.advice}` : line
  })
  const problems = findings.filter(({ status }) => status === 'problem').length
  const verdict =
    problems === 0 ? 'All is well.' : `${problems} ${problems === 1 ? 'problem' : 'problems'}.`
  return [...lines, NOT_VERIFIED, verdict].join('\n')
}

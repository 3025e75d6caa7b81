import { Elysia } from 'elysia'
import { zipSync } from 'fflate'
import { AppError } from '../../errors.ts'
import { parseWith } from '../../http/body.ts'
import { rateLimited } from '../../http/guard.ts'
import { scheduleDeletion, undoDeletion } from '../../links/deletion.ts'
import type { Link } from '../../links/link.ts'
import { changeProperties } from '../../links/properties.ts'
import { Tag } from '../../links/schema.ts'
import { requireOwnedLink } from '../../links/update.ts'
import { parseQrOptions } from '../../qr/options.ts'
import { type CurrentUser, signedIn, spendWrite } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { catchFormError, fileResponse, isTemporary, seeOther } from '../responses.ts'
import type { Form } from '../ui/form.ts'
import { listPathWith, loadTable, parseTableQuery } from '../ui/link-table.ts'
import { PAGE_SIZE } from '../ui/pager.ts'
import { exportSome } from './export.ts'
import { linksPage } from './links.ts'

/** Actions of the list on the selected links. */
export const batchPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.batch', prefix: '/app/links' })
    .use(signedIn(deps))
    // Codes have at least six characters: no link's page can have these paths.
    .post('/batch', async ({ user, form }) => {
      const query = parseTableQuery(Object.fromEntries(new URLSearchParams(form.text('at'))))
      const result = await catchListError(() => runAction(deps, user, form))
      if ('error' in result) {
        const table = await loadTable(deps, user.account, query)
        return linksPage(deps, user, { table, form: {}, error: result.error })
      }
      const { done } = result
      return done instanceof Response ? done : seeOther(listPathWith(query, done))
    })
    .post('/undo', async ({ user, form }) => {
      const query = parseTableQuery({})
      const codes = selectedCodes(form)
      const n = String(codes.length)
      const result = await catchListError(async () => {
        spendWrite(deps, user.account)
        await undoDeletion(deps, user.account, codes)
      })
      if ('done' in result) return seeOther(listPathWith(query, { done: 'restored', n }))
      const { error } = result
      const table = await loadTable(deps, user.account, query)
      // Undo stays possible: the links are deleted in a few seconds.
      const done = isTemporary(error) ? { done: 'deleted', n, undo: codes.join(',') } : {}
      return linksPage(deps, user, { table, done, form: {}, error })
    })

/** Like `catchFormError`. The list itself also shows that a link was deleted meanwhile. */
async function catchListError<Result>(action: () => Promise<Result>) {
  try {
    return await catchFormError(action)
  } catch (error) {
    if (error instanceof AppError && error.code === 'code_not_found') return { error }
    throw error
  }
}

/** For the list's query: the action, the number of links, and the codes that Undo restores. */
type Done = Record<'done' | 'n', string> & { undo?: string }

/** The codes that a form of the list sends: a page of them at most. */
function selectedCodes(form: Form): string[] {
  const codes = [...new Set(form.all('code'))]
  if (codes.length === 0) throw new AppError('invalid_value', 'Select at least one link.')
  if (codes.length > PAGE_SIZE) {
    throw new AppError('invalid_value', `Select at most ${PAGE_SIZE} links.`)
  }
  return codes
}

async function runAction(
  deps: DashboardDeps,
  user: CurrentUser,
  form: Form,
): Promise<Response | Done> {
  const { account } = user
  const codes = selectedCodes(form)
  const action = form.text('action')
  if (action === 'export' || action === 'qr') {
    const links = codes.map((code) => requireOwnedLink(deps, account, code))
    return action === 'qr' ? qrZip(deps, user, links) : exportSome(deps, links)
  }
  const n = String(codes.length)
  spendWrite(deps, account)
  switch (action) {
    case 'delete':
      await scheduleDeletion(deps, account, codes)
      return { done: 'deleted', n, undo: codes.join(',') }
    case 'pause':
    case 'resume': {
      const paused = action === 'pause'
      await changeProperties(deps, account, codes, { paused })
      return { done: paused ? 'paused' : 'resumed', n }
    }
    case 'tag':
    case 'untag': {
      const tags = [parseWith(Tag, form.text('tag'))]
      const change = action === 'tag' ? { addTags: tags } : { removeTags: tags }
      await changeProperties(deps, account, codes, change)
      return { done: action === 'tag' ? 'tagged' : 'untagged', n }
    }
    default:
      throw new AppError('invalid_value', 'Choose what to do with the selected links.')
  }
}

/** Each image costs one read of the account's budget. */
async function qrZip(
  { images, limiter, clock }: DashboardDeps,
  { account }: CurrentUser,
  links: readonly Link[],
): Promise<Response> {
  for (const _ of links) {
    const budget = limiter.takeOf(account, 'read')
    if (!budget.allowed) throw rateLimited(budget)
  }
  const codes = links.map(({ code }) => code)
  const found = await images.renderMany(codes, parseQrOptions({}), account.id)
  const files = Object.fromEntries(found.map(({ code, image }) => [`${code}.png`, image]))
  // PNG files are compressed already.
  const zip = zipSync(files, { level: 0, mtime: clock() })
  return fileResponse(zip, { name: 'hopcode-qr-codes.zip', type: 'application/zip' })
}

import { type Grid, isTooSmall, LABEL_SIDE_MIN_MM, outsideOf, PAPERS } from '../../draw/sheet.ts'
import { type Html, html } from '../../lib/html.ts'
import { LABEL_FORMATS_MAX, type LabelFormat } from '../../qr/label-formats.ts'
import { authorOf, type PageContext, spendWrite } from '../auth/guard.ts'
import { deleteColumn, deleteNamed, nameField, requireName } from '../cards/named-rows.ts'
import { editor, signedInPages } from '../page-routes.ts'
import { type NumberRule, parseNumber } from '../print-choice.ts'
import { FormRefusal, refuseAt } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { typed } from '../ui/form.ts'
import { page } from '../ui/layout.ts'

export const FORMATS_PATH = '/app/print/formats'

/** Sheets of labels that an account has measured. */
export const labelFormatPages = signedInPages({
  [`GET ${FORMATS_PATH}`]: editor(formatsPage, {
    offers: [{ label: 'Own sheets of labels', words: 'print format' }],
  }),
  [`POST ${FORMATS_PATH}`]: editor(saveFormat, formatsPage),
  [`POST ${FORMATS_PATH}/delete`]: editor(async (context) => {
    await deleteNamed(context, 'format', context.deps.data.labelFormats.delete)
    return `${FORMATS_PATH}?done=deleted`
  }),
})

const length = (label: string, max: number): NumberRule => ({ label, min: 0, max, decimals: 2 })

const MEASURES: Record<Exclude<keyof Grid, 'paper'>, NumberRule> = {
  columns: { label: 'Labels across', min: 1, max: 20, decimals: 0 },
  rows: { label: 'Labels down', min: 1, max: 40, decimals: 0 },
  width: length('Width of a label (mm)', 216),
  height: length('Height of a label (mm)', 297),
  left: length('Left edge to the first label (mm)', 100),
  top: length('Top edge to the first label (mm)', 100),
  gapX: length('Gap across (mm)', 50),
  gapY: length('Gap down (mm)', 50),
}

type MeasureName = keyof typeof MEASURES
const NAMES = Object.keys(MEASURES) as MeasureName[]

async function saveFormat(context: PageContext): Promise<string> {
  spendWrite(context)
  const { deps } = context
  const name = requireName(context)
  const author = authorOf(context)
  if (!(await deps.data.labelFormats.save({ author, name, grid: readGrid(context) }))) {
    throw refuseAt('name', `An account has at most ${LABEL_FORMATS_MAX} sheets. Delete one first.`)
  }
  return `${FORMATS_PATH}?done=saved`
}

/** Throws a refusal at the fields. */
function readGrid({ form }: PageContext): Grid {
  const errors: Record<string, string> = {}
  const grid: Grid = { ...EMPTY, paper: form.text('paper') === 'letter' ? 'letter' : 'a4' }
  for (const name of NAMES) {
    const parsed = parseNumber(form.text(name), MEASURES[name])
    if (typeof parsed === 'number') grid[name] = parsed
    else errors[name] = `${parsed}.`
  }
  if (Object.keys(errors).length > 0) throw new FormRefusal(errors)
  const outside = outsideOf(grid)
  if (outside) throw refuseAt(outside, 'The labels are wider or higher than the paper.')
  if (isTooSmall(grid)) {
    throw refuseAt('width', `A label needs ${LABEL_SIDE_MIN_MM} mm on each side, inside the paper.`)
  }
  return grid
}

const EMPTY: Grid = {
  paper: 'a4',
  columns: 3,
  rows: 8,
  width: 0,
  height: 0,
  left: 0,
  top: 0,
  gapX: 0,
  gapY: 0,
}

const DONE = {
  saved: 'The sheet is saved. Choose it on the page Print.',
  deleted: 'The sheet is deleted.',
}

function formatsPage(context: PageContext): Response {
  const { deps, user, form } = context
  const formats = deps.data.labelFormats.list(user.account.id)
  return page(context, {
    title: 'Own sheets of labels',
    back: { href: '/app/print', label: 'Print' },
    messages: DONE,
    main: html`
      ${formats.length > 0 && parts.card('Sheets', formatTable(context, formats))}
      ${parts.card('New sheet', [
        html`<p>The measures are on the package of the labels, or take a ruler.</p>`,
        parts.form(user, FORMATS_PATH, [
          nameField(context, 'sheet', { placeholder: 'Herma 4474' }),
          parts.select({
            name: 'paper',
            label: 'Paper',
            value: form.text('paper'),
            choices: Object.entries(PAPERS).map(([value, { name }]) => ({ value, label: name })),
          }),
          html`<div class="columns small">
            ${NAMES.map((name) => measureField(context, name))}
          </div>`,
          parts.button('Save sheet'),
        ]),
      ])}`,
  })
}

function measureField(context: PageContext, name: MeasureName): Html {
  const { label, min, max, decimals } = MEASURES[name]
  return parts.field({
    ...typed(context, name),
    label,
    type: 'number',
    required: true,
    extra: { min, max, step: 10 ** -decimals },
  })
}

const formatTable = (context: PageContext, formats: readonly LabelFormat[]): Html =>
  parts.table('Your sheets', formats, {
    Name: ({ id, name }) => html`<a href="/app/print?labels=own-${id}">${name}</a>`,
    Labels: ({ grid }) => `${grid.columns} × ${grid.rows} on ${PAPERS[grid.paper].name}`,
    Size: ({ grid }) => `${grid.width} × ${grid.height} mm`,
    'Delete it': deleteColumn(context, `${FORMATS_PATH}/delete`, 'sheet', 'format'),
  })

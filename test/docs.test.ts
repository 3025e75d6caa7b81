import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createProgram } from '../src/cli/program.ts'

/** The pages of the documentation that list what the program or the folder has. */

const DOCS = join(import.meta.dir, '../docs')

test('the index has every page', () => {
  const index = readFileSync(join(DOCS, 'README.md'), 'utf8')
  const pages = [...new Bun.Glob('**/*.md').scanSync({ cwd: DOCS })]
    .filter((path) => !/^(decisions|pictures)\/|^README/.test(path))
    .sort()
  expect(pages.length).toBeGreaterThan(10)
  expect(pages.filter((path) => !index.includes(`](${path})`))).toEqual([])
})

test('the index of decisions has each with its number and title, once', () => {
  const folder = join(DOCS, 'decisions')
  const lines = readFileSync(join(folder, 'README.md'), 'utf8').split('\n')
  const listed = lines.filter((line) => line.startsWith('- '))
  const pages = [...new Bun.Glob('[0-9]*.md').scanSync(folder)].sort()
  const expected = pages.map((page) => {
    const [first = ''] = readFileSync(join(folder, page), 'utf8').split('\n')
    const [, number, title] = /^# (\d{3}) (.+)$/.exec(first) ?? []
    return `- [${number}](${page}) ${title}`
  })
  expect(listed.toSorted()).toEqual(expected)
})

test('the page of commands has every command, and each page names commands that exist', () => {
  const program = createProgram(async () => {
    throw new Error('the service was started')
  })
  const table = readFileSync(join(DOCS, 'commands.md'), 'utf8')
  const cells = [...table.matchAll(/^\| (.*?) \| /gm)].map(([, cell = '']) => cell)
  const hasRow = (name: string, part = '') =>
    cells.some(
      (cell) => cell.includes(`\`hopcode ${name}`) && new RegExp(`\\b${part}\\b`).test(cell),
    )
  const missing = program.commands.flatMap((command) =>
    command.commands.length === 0
      ? [command.name()].filter((name) => !hasRow(name))
      : command.commands
          .filter((part) => !hasRow(command.name(), part.name()))
          .map((part) => `${command.name()} ${part.name()}`),
  )
  expect(program.commands.length).toBeGreaterThan(10)
  expect(missing).toEqual([])

  const names = new Set(['help', ...program.commands.map((command) => command.name())])
  const unknown = [...new Bun.Glob('**/*.md').scanSync({ cwd: DOCS })].flatMap((path) => {
    const text = readFileSync(join(DOCS, path), 'utf8')
    return [...text.matchAll(/`(?:docker compose exec(?: -T)? hopcode )?hopcode ([a-z-]+)/g)]
      .filter(([, name = '']) => !names.has(name))
      .map(([command]) => `${path}: ${command}`)
  })
  expect(unknown).toEqual([])
})

import { expect, test } from 'bun:test'
import { AppError } from '../../errors.ts'
import { RequestBodies } from '../../http/body.ts'
import { readForm } from './form.ts'

const FIELD = '--y\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'

function readFields(count: number, type: string) {
  const body = `${FIELD.repeat(count)}--y--\r\n`
  const headers = { 'content-type': type, 'content-length': String(body.length) }
  const request = new Request('http://localhost/', { method: 'POST', headers, body })
  return readForm(new RequestBodies(), request, { holder: 1, bytesMax: 2 ** 20 })
}

test.each(['y', '"y"'])('a multipart form with the boundary %s is read', async (boundary) => {
  const form = await readFields(3, `multipart/form-data; boundary=${boundary}`)
  expect(form.all('a')).toEqual(['1', '1', '1'])
})

test.each([
  { type: 'multipart/form-data; boundary=y', code: 'too_many_fields' },
  // Its fields are counted with a boundary that they do not have.
  { type: 'multipart/form-data; a="; boundary=z"; boundary=y', code: 'unsupported_form' },
])('a multipart form of 2,000 fields is refused: $type', async ({ type, code }) => {
  const refusal = await readFields(2000, type).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(AppError)
  expect(refusal).toMatchObject({ code })
})

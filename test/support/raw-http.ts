import { connect } from 'node:net'

interface RawAnswer {
  status: number
  headers: Headers
  text: string
}

/** Sends bytes exactly as they are, which fetch would not, and reads until the service closes. */
export async function rawRequest(base: string, head: string[], body = ''): Promise<RawAnswer> {
  const { hostname, port, host } = new URL(base)
  const lines = [...head, `Host: ${host}`, 'Connection: close', '', body]
  const chunks: Buffer[] = []
  await new Promise<void>((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) }, () => {
      socket.write(lines.join('\r\n'))
    })
    socket.on('data', (chunk) => chunks.push(Buffer.from(chunk)))
    socket.on('error', reject)
    socket.on('close', () => resolve())
  })
  const answer = Buffer.concat(chunks).toString()
  const end = answer.indexOf('\r\n\r\n')
  const [start = '', ...fields] = answer.slice(0, end).split('\r\n')
  const headers = new Headers()
  for (const field of fields) {
    const colon = field.indexOf(':')
    headers.append(field.slice(0, colon), field.slice(colon + 1).trim())
  }
  return { status: Number(start.split(' ')[1]), headers, text: answer.slice(end + 4) }
}

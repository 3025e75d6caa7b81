import { Conversation, type Told } from './conversation.ts'

/** Sends bytes exactly as they are, which fetch would not, on a connection of their own. */
export async function rawRequest(base: string, head: string[], body = ''): Promise<Told> {
  using client = await Conversation.open(base)
  client.send([...head, `Host: ${new URL(base).host}`, 'Connection: close', '', body].join('\r\n'))
  const [told] = await client.answers(1)
  if (!told) throw new Error('the service closed the connection without an answer')
  return told
}

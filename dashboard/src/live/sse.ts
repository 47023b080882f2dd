// Server-sent events, read by hand: unlike EventSource this can show a token.

/** One event as it stood in the stream. */
export interface Sent {
  event: string
  data: string
}

/** Takes pieces of a stream and gives the events that are complete. */
export class SentEvents {
  private rest = ''

  take(piece: string): Sent[] {
    const blocks = (this.rest + piece).replaceAll('\r\n', '\n').split('\n\n')
    this.rest = blocks.pop() ?? ''
    return blocks.flatMap(read)
  }
}

function read(block: string): Sent[] {
  let event = 'message'
  const data: string[] = []
  for (const line of block.split('\n')) {
    if (line.startsWith('event:')) event = line.slice(6).trim()
    if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''))
  }
  return data.length === 0 ? [] : [{ event, data: data.join('\n') }]
}

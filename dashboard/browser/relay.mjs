// Stands between a browser and a server: passes on every request, and tells events at a pace of its own, which no machine has to be fast enough to cause.
import { createHash } from 'node:crypto'
import { createServer, request } from 'node:http'

const TICK_MS = 20

export class Relay {
  static async start(server) {
    const relay = new Relay()
    relay.lines = new Set()
    relay.server = createServer((asked, answer) => {
      const headers = { ...asked.headers, host: `127.0.0.1:${server.port}` }
      const passed = request({ host: '127.0.0.1', port: server.port, path: asked.url, method: asked.method, headers }, (found) => {
        answer.writeHead(found.statusCode, found.headers)
        found.pipe(answer)
      })
      passed.on('error', () => answer.destroy())
      asked.pipe(passed)
    })
    relay.server.on('upgrade', (asked, socket) => relay.open(asked, socket))
    await new Promise((ready) => relay.server.listen(0, '127.0.0.1', ready))
    relay.port = relay.server.address().port
    relay.base = `http://127.0.0.1:${relay.port}`
    return relay
  }

  /** The handshake of a WebSocket; what the browser says afterwards does not matter here. */
  open(asked, socket) {
    const key = createHash('sha1').update(`${asked.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
    const protocol = asked.headers['sec-websocket-protocol']?.split(',')[0]?.trim()
    const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade', `Sec-WebSocket-Accept: ${key}`]
    if (protocol) lines.push(`Sec-WebSocket-Protocol: ${protocol}`)
    socket.write(`${lines.join('\r\n')}\r\n\r\n`)
    socket.on('error', () => this.lines.delete(socket)).on('close', () => this.lines.delete(socket)).resume()
    socket.write(frame(JSON.stringify({ type: 'connection.established', timestamp: new Date().toISOString(), data: { connectionId: 'relay', lastEventId: 0 } })))
    this.lines.add(socket)
  }

  /** Tells so many events a second until all are told, and says at which pace that was. */
  async tell(events, perSecond) {
    const began = performance.now()
    for (let told = 0; told < events.length; ) {
      const due = Math.min(events.length, Math.ceil(((performance.now() - began) / 1_000) * perSecond))
      const together = Buffer.concat(events.slice(told, due).map((event) => frame(JSON.stringify(event))))
      for (const socket of this.lines) socket.write(together)
      told = due
      if (told < events.length) await new Promise((later) => setTimeout(later, TICK_MS))
    }
    return events.length / ((performance.now() - began) / 1_000)
  }

  close() {
    for (const socket of this.lines) socket.destroy()
    this.server.closeAllConnections()
    return new Promise((closed) => this.server.close(closed))
  }
}

/** A text as it stands on a WebSocket, from a server. */
function frame(text) {
  const body = Buffer.from(text)
  if (body.length < 126) return Buffer.concat([Buffer.from([0x81, body.length]), body])
  const head = Buffer.alloc(4)
  head.writeUInt16BE(0x817e)
  head.writeUInt16BE(body.length, 2)
  return Buffer.concat([head, body])
}

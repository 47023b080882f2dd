import { describe, expect, it } from 'vitest'
import { entryOf, pairsOf, wordsOf } from './entry'

describe('the entry of a server', () => {
  it('has the program and its arguments as they are typed', () => {
    const fields = { name: 'files', kind: 'program', command: 'npx -y server "/srv/my files"', url: '', pairs: 'TOKEN=${FILES_TOKEN}' } as const
    expect(entryOf(fields)).toEqual({ name: 'files', command: 'npx', args: ['-y', 'server', '/srv/my files'], env: { TOKEN: '${FILES_TOKEN}' } })
  })

  it('has an address with its headers, and nothing of a program', () => {
    const fields = { name: 'web', kind: 'address', command: 'npx', url: 'https://a.example/mcp', pairs: 'Authorization: Bearer ${T}' } as const
    expect(entryOf(fields)).toEqual({ name: 'web', url: 'https://a.example/mcp', headers: { Authorization: 'Bearer ${T}' } })
    expect(entryOf({ ...fields, pairs: '' })).toEqual({ name: 'web', url: 'https://a.example/mcp' })
  })

  it('reads words and pairs', () => {
    expect(wordsOf(`a 'b c' "d e" f`)).toEqual(['a', 'b c', 'd e', 'f'])
    expect(pairsOf(' A=1=2 \n\nB: x:y\nC')).toEqual({ A: '1=2', B: 'x:y', C: '' })
  })
})

// How the dashboard is built: into the crate that carries it, so that `cargo build` finds it there.
import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vitest/config'

const server = process.env['O8_SERVER'] ?? 'http://127.0.0.1:8088'
const asked = { target: server, changeOrigin: false }

/** While one develops, the page takes its token from the server that it talks to. */
const tokenOfServer = {
  name: 'token-of-server',
  apply: 'serve' as const,
  async transformIndexHtml(html: string) {
    const page = await fetch(server).then((found) => found.text(), () => '')
    const token = /name="orchestr8-page" content="([^"]*)"/.exec(page)?.[1] ?? ''
    return html.replace('__PAGE_TOKEN__', token)
  },
}

export default defineConfig({
  plugins: [react(), tailwindcss(), tokenOfServer],
  build: {
    outDir: '../crates/faces/dashboard/built',
    // The folder has a file that stays; scripts/clean.mjs takes the rest away.
    emptyOutDir: false,
    target: 'es2022',
    modulePreload: { polyfill: false },
    // Data addresses would need a wider content policy.
    assetsInlineLimit: 0,
  },
  server: {
    proxy: Object.fromEntries(
      ['/v1', '/mcp', '/aacp', '/admin', '/documents', '/artifacts', '/metrics', '/version', '/openapi.json', '/healthz']
        .map((path): [string, object] => [path, asked])
        .concat([['/ws', { ...asked, ws: true }]]),
    ),
  },
  test: { include: ['src/**/*.test.ts', 'src/**/*.test.tsx'] },
})

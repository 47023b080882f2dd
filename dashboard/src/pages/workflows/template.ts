// What a new workflow begins with: small, and it runs.
export const TEMPLATE = `{
  "id": "greeting",
  "version": "1.0.0",
  "name": "Greeting",
  "variables": { "who": "world" },
  "steps": [
    {
      "id": "greet",
      "agentId": "@orchestr8/echo",
      "input": { "text": "Hello, \${variables.who}!" }
    },
    {
      "id": "answer",
      "agentId": "@orchestr8/echo",
      "dependencies": ["greet"],
      "input": { "text": "\${steps.greet.output.text} How are you?" }
    }
  ]
}
`

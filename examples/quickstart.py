"""The README's example: three hundred tools, one request, a few hundred tokens of them in the model's context."""

import openai

import loadpoint
from loadpoint import emulator
from loadpoint.bench import demo_tools

tools = demo_tools("openai.chat")
client = loadpoint.wrap(openai.OpenAI(**emulator.unless_key("OPENAI_API_KEY")))
messages = [{"role": "user", "content": "Post 'the build is green' to the #releases channel on Slack."}]
reply = client.chat.completions.create(model="gpt-5.4", messages=messages, tools=tools)
print(reply.choices[0].message.tool_calls)
print(loadpoint.report(reply))
